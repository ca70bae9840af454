import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import { FIRST } from './fake-bearer.ts';
import { routeTo, type Sidecar, startSidecar } from './sidecar.ts';

/** A server of a real library, which echoes, with the requests that opened its sockets. */
async function startWebSocketServer(verify: (request: IncomingMessage) => boolean = () => true) {
  const requests: IncomingMessage[] = [];
  const http = createServer();
  const server = new WebSocketServer({
    server: http,
    handleProtocols: () => 'chat',
    verifyClient: ({ req }: { req: IncomingMessage }) => verify(req),
  });
  server.on('connection', (socket, request) => {
    requests.push(request);
    socket.on('message', (data: RawData, isBinary: boolean) => socket.send(data, { binary: isBinary }));
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  onTestFinished(() => {
    for (const client of server.clients) client.terminate();
    http.close();
  });
  const address = http.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  return { address: { host: '127.0.0.1', port: address.port }, server, requests };
}

function open(sidecar: Sidecar, path = '/chat?room=1'): WebSocket {
  const socket = new WebSocket(`ws://${sidecar.address.host}:${sidecar.address.port}${path}`, 'chat');
  onTestFinished(() => socket.terminate());
  return socket;
}

describe('a WebSocket', () => {
  it('opens with the token and passes messages in both directions', async () => {
    const upstream = await startWebSocketServer();
    const sidecar = await startSidecar({ routes: [routeTo(upstream)] });
    const socket = open(sidecar);
    await once(socket, 'open');
    const large = Buffer.alloc(1_000_000, 'x');

    socket.send('hello');
    expect(String((await once(socket, 'message'))[0])).toBe('hello');
    socket.send(large);
    expect(large.equals((await once(socket, 'message'))[0])).toBe(true);

    expect(socket.protocol).toBe('chat');
    expect(upstream.requests.map(({ url, headers }) => [url, headers.authorization])).toEqual([
      ['/chat?room=1', FIRST],
    ]);
  });

  it('passes ping, pong and the close code', async () => {
    const upstream = await startWebSocketServer();
    const sidecar = await startSidecar({ routes: [routeTo(upstream)] });
    const socket = open(sidecar);
    await once(socket, 'open');

    socket.ping('beat');
    expect(String((await once(socket, 'pong'))[0])).toBe('beat');
    const [far] = upstream.server.clients;
    far?.close(4321, 'enough');

    const [code, reason] = await once(socket, 'close');
    expect([code, String(reason)]).toEqual([4321, 'enough']);
    await sidecar.idle();
  });

  it('that the server refuses gets the server’s answer', async () => {
    const upstream = await startWebSocketServer(() => false);
    const sidecar = await startSidecar({ routes: [routeTo(upstream)] });

    const [error] = await once(open(sidecar), 'error');

    expect(String(error)).toContain('401');
  });
});
