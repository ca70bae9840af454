/**
 * A pod at the end of a slow wire, and all that it asks at the other. Run by the test in namespaces of its own with a
 * directory, the server's program and the way; prints the outcome as JSON.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { FAR, NAMES, NEAR, PORTS, type Way } from './surroundings.ts';

const run = promisify(execFile);
const [directory, program, way] = process.argv.slice(2) as [string, string, string];
const { roundTripMs, ipv6, naming } = JSON.parse(way) as Way;

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
  const args = [join(import.meta.dirname, 'wire.py'), 'near', 'far', String(roundTripMs / 2)];
  const wire = spawn('python3', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(wire.stdout, 'data');
  await run('bash', ['-c', `${MAKE_POD}${ipv6 === 'lost' ? GIVE_IPV6 : ''}`]);
  return wire;
}

const spansArrived = Promise.withResolvers<void>();

async function startServer(): Promise<ChildProcess> {
  const authority = createCertificateAuthority('of far away');
  const { cert, key } = authority.issue('far', ...NAMES);
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(directory, name), text);
    return join(directory, name);
  };
  await file('ca.crt', authority.cert);
  const args = [await file('tls.crt', cert), await file('tls.key', key), 'token-from-far-away'];
  const server = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const listening = Promise.withResolvers<void>();
  createInterface({ input: server.stdout }).on('line', (line) => {
    if (line === 'listening') listening.resolve();
    else spansArrived.resolve();
  });
  await listening.promise;
  return server;
}

/** Knows CONNECT alone, and finds names by itself. */
async function startProxy(): Promise<void> {
  const proxy = createServer();
  proxy.on('connect', ({ url = '' }, socket) => {
    const upstream = connect(Number(url.split(':')[1]), FAR.ipv4, () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
    });
    upstream.on('error', () => socket.destroy());
    socket.on('error', () => upstream.destroy());
  });
  proxy.listen(PORTS.proxy, '::');
  await once(proxy, 'listening');
}

await startProxy();
const children = [await startServer(), await layWire()];
try {
  const podArgs = [join(import.meta.dirname, 'pod.ts'), directory, naming];
  const { stdout } = await run('ip', ['netns', 'exec', 'pod', process.execPath, ...podArgs]);
  const spans = await Promise.race([
    spansArrived.promise.then(() => 'arrived'),
    once(AbortSignal.timeout(10_000), 'abort').then(() => 'did not arrive'),
  ]);
  process.stdout.write(JSON.stringify({ ...JSON.parse(stdout), spans }));
} finally {
  for (const child of children) child.kill();
}
process.exit();
