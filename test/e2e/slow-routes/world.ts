/**
 * A pod at the end of a slow wire, and all that it asks at the other. Run by the test in namespaces of its own with a
 * directory, the round trip in milliseconds and what IPv6 is there; prints the outcome as one line of JSON.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { promisify } from 'node:util';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { FAR, type Ipv6, NAMES, NEAR, PORTS, TOKEN } from './surroundings.ts';

const run = promisify(execFile);
const [directory, roundTripMs, ipv6] = process.argv.slice(2) as [string, string, Ipv6];

const MAKE_POD = `
set -e
ip link set far up
ip address add ${FAR.ipv4}/24 dev far
ip address add ${FAR.ipv6}/64 dev far nodad
ip netns add pod
ip link set near netns pod
ip -n pod link set lo up
ip -n pod link set near up
ip -n pod address add ${NEAR.ipv4}/24 dev near
ip -n pod address add ${NEAR.onLink}/64 dev near nodad
`;
const GIVE_IPV6 = `ip -n pod address add ${NEAR.ipv6}/64 dev near nodad`;

async function layWire(): Promise<ChildProcess> {
  const args = [join(import.meta.dirname, 'wire.py'), 'near', 'far', String(Number(roundTripMs) / 2), 'ipv4'];
  const wire = spawn('python3', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(wire.stdout, 'data');
  await run('bash', ['-c', `${MAKE_POD}${ipv6 === 'lost' ? GIVE_IPV6 : ''}`]);
  return wire;
}

async function listening(server: Server, port: number): Promise<void> {
  server.listen(port, '::');
  await once(server, 'listening');
}

function answerJson(response: ServerResponse, body: object): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(body));
}

const spansArrived = Promise.withResolvers<void>();

async function startServers(): Promise<void> {
  const authority = createCertificateAuthority('of far away');
  await writeFile(join(directory, 'ca.crt'), authority.cert);
  const identity = authority.issue('far', ...NAMES);
  const overTls = (answer: (request: IncomingMessage, response: ServerResponse) => void, port: number) =>
    listening(createHttpsServer(identity, answer), port);

  const issuer = `https://idp.example.com:${PORTS.idp}`;
  await overTls((request, response) => {
    request.resume();
    if (request.url?.startsWith('/.well-known/') === true) {
      answerJson(response, { issuer, token_endpoint: `${issuer}/token` });
    } else {
      answerJson(response, { access_token: TOKEN, token_type: 'Bearer', expires_in: 300 });
    }
  }, PORTS.idp);
  await overTls((request, response) => {
    response.statusCode = request.headers.authorization === `Bearer ${TOKEN}` ? 200 : 401;
    response.end();
  }, PORTS.api);
  await overTls((request, response) => {
    request.resume().once('end', spansArrived.resolve);
    response.end();
  }, PORTS.collector);
  await overTls((_request, response) => answerJson(response, { major: '1' }), PORTS.cluster);
  // As far as the token cache asks when it connects.
  await listening(
    createTlsServer(identity, (socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        for (const [, word] of chunk.toString().matchAll(/\*\d+\r\n\$\d+\r\n([A-Z]+)/g))
          socket.write(word === 'PTTL' ? ':-2\r\n' : '+OK\r\n');
      });
    }),
    PORTS.cache,
  );
  const proxy = createHttpServer();
  proxy.on('connect', ({ url = '' }, socket) => {
    const upstream = connect(Number(url.split(':')[1]), FAR.ipv4, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
    });
    upstream.on('error', () => socket.destroy());
    socket.on('error', () => upstream.destroy());
  });
  await listening(proxy, PORTS.proxy);
  await listening(createServer(), PORTS.idp + 1);
}

await startServers();
const wire = await layWire();
try {
  const pod = ['netns', 'exec', 'pod', process.execPath, join(import.meta.dirname, 'pod.ts'), directory];
  const { stdout } = await run('ip', pod, { timeout: 100_000 });
  const late = AbortSignal.timeout(10_000);
  const spans = await Promise.race([
    spansArrived.promise.then(() => 'arrived'),
    once(late, 'abort').then(() => 'did not arrive'),
  ]);
  process.stdout.write(JSON.stringify({ ...JSON.parse(stdout), spans }));
} finally {
  wire.kill();
}
process.exit();
