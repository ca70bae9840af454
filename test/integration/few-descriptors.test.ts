import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { RunningCommand } from '../support/run-command.ts';

const MAX_CONNECTIONS = 192;

const OPEN_FILES = 448;
/** What the descriptors allow: see `mostConnections`. */
const MOST = 32;
/** Half of those that are told why at once: the ones before may still be on their way out. */
const TOLD_AT_ONCE = 8;
/** Of one connection of HTTP/2: as many as it may have. */
const STREAMS = 100;

/** Resolves with all that the sidecar says on a connection that it ends. */
async function saidTo(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (bytes) => {
    text += bytes;
  });
  await once(socket, 'close');
  return text;
}

/** Runs the sidecar with so few descriptors. */
async function startWithFew(...settings: string[]): Promise<{
  running: RunningCommand;
  proxy: { host: string; port: number };
  admin: string;
}> {
  const running = new RunningCommand(
    [
      ...['proxy', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
      ...['--token-url', 'http://127.0.0.1:1/token', '--credentials-dir', '/nonexistent', ...settings],
    ],
    {},
    ['sh', '-c', `ulimit -n ${OPEN_FILES}; exec "$@"`, 'sh'],
  );
  const [, proxy, admin] = await running.output(/"proxy":"([^"]+)","admin":"([^"]+)"/);
  const { hostname: host, port } = new URL(`http://${proxy}`);
  return { running, proxy: { host, port: Number(port) }, admin: String(admin) };
}

it('a process with few descriptors refuses connections above its bound, and answers its probes', async () => {
  const { running, proxy, admin } = await startWithFew('--upstream', 'http://127.0.0.1:1');
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const open = (): Socket => {
    const socket = connect(proxy);
    sockets.push(socket);
    return socket;
  };
  await Promise.all(Array.from({ length: MOST }, () => once(open(), 'connect')));

  // As many as there are descriptors: if one were kept for each, there would be none left.
  for (let count = 0; count < OPEN_FILES; count += TOLD_AT_ONCE) {
    const said = await Promise.all(Array.from({ length: TOLD_AT_ONCE }, () => saidTo(open())));
    for (const text of said) {
      expect(text).toMatch(/^HTTP\/1\.1 503 .*\r\ntoken-sidecar-error: overloaded\r\n/s);
    }
  }
  expect((await fetch(`http://${admin}/livez`)).status).toBe(200);

  const [served] = sockets;
  const ended = once(served as Socket, 'close');
  served?.destroy();
  await ended;
  for (;;) {
    const again = open();
    again.write('nonsense\r\n');
    if ((await saidTo(again)).startsWith('HTTP/1.1 400 ')) break;
  }
  expect(running.stdout.match(/connections refused: too many are open/g)).toHaveLength(1);
});

/** @returns the path of a file with this text, for as long as the test runs. */
async function configured(text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'few-descriptors-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, 'token-sidecar.yaml');
  await writeFile(file, text);
  return file;
}

/** Answers when so many requests are there, each on a connection of its own. */
async function startTogether(requests: number): Promise<string> {
  const waiting: Socket[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => open.delete(socket));
    socket.on('data', () => {
      waiting.push(socket);
      if (waiting.length < requests) return;
      for (const each of waiting.splice(0)) each.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('a process with few descriptors keeps no more idle upstream connections than leave some for others', async () => {
  const file = await configured('{ forwardProxy: { allow: [{ host: api.test }], otherHosts: pass } }');
  const { proxy, admin } = await startWithFew('--config', file);
  const clients = Array.from({ length: MOST }, () => connect(proxy));
  onTestFinished(() => {
    for (const client of clients) client.destroy();
  });

  for (let upstreams = 0; upstreams < 5; upstreams++) {
    const upstream = await startTogether(MOST);
    const answers = clients.map(async (client) => {
      client.write(`GET http://${upstream}/ HTTP/1.1\r\nHost: ${upstream}\r\n\r\n`);
      const [answer] = await once(client, 'data');
      expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
    });
    await Promise.all(answers);
    expect((await fetch(`http://${admin}/livez`)).status).toBe(200);
  }
});

it('streams of one connection that are tunnels take no more descriptors than leave some for probes', async () => {
  const upstream = await startTogether(Number.POSITIVE_INFINITY);
  const [host, port] = upstream.split(':');
  const file = await configured(
    `{ forwardProxy: { allow: [{ host: ${host}, port: ${port} }], connect: tunnel } }`,
  );
  const { proxy, admin } = await startWithFew('--config', file);
  const session = connectHttp2(`http://${proxy.host}:${proxy.port}`);
  onTestFinished(() => session.destroy());
  const asked = Array.from({ length: STREAMS }, async () => {
    const tunnel = session.request({ ':method': 'CONNECT', ':authority': upstream });
    tunnel.on('error', () => {});
    const [answer] = await once(tunnel, 'response');
    return answer[':status'];
  });

  const statuses = await Promise.all(asked);

  expect(statuses.filter((status) => status === 200)).toHaveLength(MOST);
  expect(statuses.filter((status) => status === 503)).toHaveLength(STREAMS - MOST);
  expect((await fetch(`http://${admin}/livez`)).status).toBe(200);
});

/** Resolves with the first that comes on a connection, or with nothing where it ends before. */
function firstWord(socket: Socket, said: string): Promise<string> {
  socket.on('error', () => socket.destroy());
  onTestFinished(() => void socket.destroy());
  socket.write(said);
  return new Promise((resolve) => {
    socket.once('data', (bytes) => resolve(String(bytes)));
    socket.once('close', () => resolve(''));
  });
}

it('probes are answered while connections of the app are busy and others crowd the admin listener', async () => {
  const upstream = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    // Its answers have no end.
    socket.once('data', () =>
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n'),
    );
  });
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  onTestFinished(() => void upstream.close());
  const { port } = upstream.address() as AddressInfo;
  const file = await configured(
    `{ routes: [{ name: api, upstream: "http://127.0.0.1:${port}", whenTokenUnavailable: passthrough }] }`,
  );
  const { proxy, admin } = await startWithFew('--config', file);

  const heads = await Promise.all(
    Array.from({ length: OPEN_FILES / 2 }, () =>
      firstWord(connect(proxy), 'GET / HTTP/1.1\r\nHost: app.test\r\n\r\n'),
    ),
  );
  expect(heads.filter((head) => head.startsWith('HTTP/1.1 200 ')).length).toBeGreaterThan(0);
  const { hostname: host, port: adminPort } = new URL(`http://${admin}`);
  // One place is left, for the probe.
  const crowd = Array.from({ length: MAX_CONNECTIONS - 1 }, (_, n) => {
    const localAddress = `127.0.1.${n}`;
    const socket = connect({ host, port: Number(adminPort), localAddress });
    socket.on('error', () => socket.destroy());
    onTestFinished(() => void socket.destroy());
    return once(socket, 'connect');
  });
  await Promise.all(crowd);

  expect((await fetch(`http://${admin}/livez`)).status).toBe(200);
  expect(heads.filter((head) => head.startsWith('HTTP/1.1 200 '))).toHaveLength(MOST);
});
