/**
 * A network of its own, in which unmodified clients meet the sidecar: a name server, the API with all that clients ask of it, a
 * token endpoint, and the sidecar as a program. Run by `start-world.ts` in namespaces of their own; prints one JSON object a line: first
 * `{ ready }` with the sidecar's process, then what arrives at the API.
 */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer as createTlsServer } from 'node:https';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { promisify } from 'node:util';
import { WebSocketServer } from 'ws';
import { capturedPorts } from '../../../src/injector/pod/redirect-mode.ts';
import { createAuthority } from '../../../src/proxy/tls/interception-ca.ts';
import { writeTrustFiles } from '../../../src/sidecar/interception.ts';
import { openDnsServer } from '../../support/dns-server.ts';
import { selfSigned } from '../../wire/certificate.ts';
import {
  API,
  API_ADDRESS,
  API_BY_IPV6,
  type Arrived,
  BODY,
  FORGED,
  FORGER_ADDRESS,
  FORGER_TRUST,
  GOOD,
  IMAGE_USER,
  IN_POD,
  OTHER,
  OTHER_PORT,
  OUTSIDE,
  SIDECAR_USER,
  TOKEN,
  type WorldMode,
} from './surroundings.ts';

const MAIN = join(import.meta.dirname, '../../../src/main.ts');
const [mode, directory] = process.argv.slice(2) as [WorldMode, string];

function tell(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function note(headers: IncomingMessage['headers'], path: string, version: string): void {
  const { authorization = 'none', host = headers[':authority'] } = headers;
  const token = authorization === `Bearer ${TOKEN}` ? 'ours' : authorization;
  tell({ path, host: String(host), version, token } satisfies Arrived);
}

/** Files of a repository, an index of Python's and one of npm's, made by `start-world.ts`; all else is a greeting. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', `https://${API}`);
  note(request.headers, pathname, request.httpVersion);
  if (request.headers['content-type']?.startsWith('application/grpc') === true) {
    // A unary call, which gets back what it says.
    response.setHeader('content-type', 'application/grpc');
    response.addTrailers({ 'grpc-status': '0' });
    request.pipe(response);
    return;
  }
  const file = join(directory, 'served', pathname.endsWith('/') ? `${pathname}index.html` : pathname);
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() === true) {
    response.setHeader('content-type', pathname.endsWith('/') ? 'text/html' : 'application/octet-stream');
    createReadStream(file).pipe(response);
  } else if (/^\/(?:repository|index|npm)\//.test(pathname)) {
    response.writeHead(404).end();
  } else {
    response.end(BODY);
  }
}

async function startApi(): Promise<void> {
  const certificate = selfSigned(API, OTHER, API_BY_IPV6);
  await writeFile(join(directory, 'api.crt'), certificate.cert);
  await writeFile(join(directory, 'api.key'), certificate.key);
  const server = createSecureServer({ ...certificate, allowHTTP1: true }, answer as never);
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request: IncomingMessage, socket, head: Buffer) => {
    note(request.headers, request.url ?? '', request.httpVersion);
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.on('message', (data, binary) => webSocket.send(data, { binary }));
    });
  });
  server.listen(443, mode === 'redirect' ? '::' : API_ADDRESS);
  await once(server, 'listening');
}

async function startForger(): Promise<void> {
  const authority = createAuthority({ names: [GOOD], nowMs: Date.now() });
  await writeTrustFiles(join(directory, FORGER_TRUST), authority.root, []);
  const contextOf = (name: string) => {
    const { chain, key } = authority.issue(name, Date.now());
    return createSecureContext({ cert: chain, key });
  };
  const server = createTlsServer(
    { SNICallback: (name, done) => done(null, contextOf(name)) },
    (request, response) => {
      tell({
        path: `/forged/${request.headers.host}`,
        host: '',
        version: '',
        token: 'none',
      } satisfies Arrived);
      response.end(BODY);
    },
  );
  server.on('tlsClientError', () => {});
  server.listen(443, FORGER_ADDRESS);
  await once(server, 'listening');
}

async function startTokenEndpoint(): Promise<void> {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ access_token: TOKEN, token_type: 'Bearer', expires_in: 300 }));
  });
  server.listen(8080, mode === 'redirect' ? OUTSIDE.ipv4 : '127.0.0.1');
  await once(server, 'listening');
}

/** @returns its process. */
async function startSidecar(): Promise<number> {
  const ofItsUser = ['setpriv', `--reuid=${SIDECAR_USER}`, `--regid=${IMAGE_USER}`, '--clear-groups'];
  const inPod = mode === 'redirect' ? [...IN_POD, ...ofItsUser] : [];
  const program = [process.execPath, MAIN, 'proxy', '--config', join(directory, 'sidecar.json')];
  const [command, ...args] = [...inPod, ...program] as [string, ...string[]];
  const { PATH = '' } = process.env;
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { PATH } });
  process.on('exit', () => child.kill());
  let log = '';
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`the sidecar ended:\n${log}`)));
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      log += text;
      if (log.includes('"msg":"ready"')) resolve();
      for (const line of text.split('\n').filter((one) => one.includes('client_rejected_certificate'))) {
        tell({ log: line });
      }
    });
  });
  return child.pid as number;
}

/** As the injected init container does, when the sidecar is there. */
async function redirect(): Promise<void> {
  const hosts = `${API},${API_BY_IPV6},${API}:${OTHER_PORT}`;
  const flags = ['--ports', capturedPorts(hosts), '--exempt-user', SIDECAR_USER];
  const [command, ...args] = [...IN_POD, process.execPath, MAIN, 'redirect', ...flags] as [
    string,
    ...string[],
  ];
  await promisify(execFile)(command, args);
}

const forger = { addresses: [FORGER_ADDRESS] };
await openDnsServer(
  {
    [API]: { addresses: [API_ADDRESS] },
    [OTHER]: { addresses: [API_ADDRESS] },
    [API_BY_IPV6]: { addresses: [OUTSIDE.ipv6] },
    ...Object.fromEntries([GOOD, ...FORGED].map((name) => [name, forger])),
  },
  { port: 53, host: mode === 'redirect' ? OUTSIDE.ipv4 : '127.0.0.1' },
);
await Promise.all([startApi(), startTokenEndpoint(), ...(mode === 'redirect' ? [] : [startForger()])]);
const sidecar = await startSidecar();
if (mode === 'redirect') await redirect();
tell({ ready: sidecar });
process.stdin.resume().on('end', () => process.exit());
