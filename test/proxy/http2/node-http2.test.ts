/** Both kinds of connection beside nghttp2, as Node has it, over loopback sockets. */

import { once } from 'node:events';
import http2 from 'node:http2';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { ClientConnection, type ClientStream } from '../../../src/proxy/http2/client-connection.ts';
import type { MessageStream } from '../../../src/proxy/http2/connection-output.ts';
import { ServerConnection, type ServerStream } from '../../../src/proxy/http2/server-connection.ts';
import { PREFACE } from '../../../src/proxy/http2/settings.ts';
import { LIMITS } from './endpoint.ts';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Sender<S> {
  sendable(stream: S): number;
  sendData(stream: S, bytes: number, endStream: boolean): void;
  sendFields(stream: S, fields: readonly string[], endStream: boolean): void;
  readonly output: { octets(octets: Buffer): void };
}

/** What a stream still has to send: the rest of its body, then trailers. */
interface Sending {
  rest: Buffer;
  trailers: readonly string[];
}

function sendOn<S extends MessageStream<Sending>>(connection: Sender<S>, stream: S): void {
  const { context } = stream;
  if (context === undefined) return;
  while (context.rest.length > 0) {
    const bytes = Math.min(context.rest.length, connection.sendable(stream));
    if (bytes === 0) return;
    const last = bytes === context.rest.length && context.trailers.length === 0;
    connection.sendData(stream, bytes, last);
    connection.output.octets(context.rest.subarray(0, bytes));
    context.rest = context.rest.subarray(bytes);
    if (last) stream.context = undefined;
  }
  if (context.trailers.length > 0) {
    connection.sendFields(stream, context.trailers, true);
    stream.context = undefined;
  }
}

/** Answers every request with its own fields, body and trailers. */
async function echoServer(): Promise<number> {
  const server = createServer((socket) => {
    const waiting = new Set<ServerStream<Sending>>();
    const bodies = new Map<number, Buffer[]>();
    const answer = (stream: ServerStream<Sending>, trailers: readonly string[]): void => {
      const rest = Buffer.concat(bodies.get(stream.id) ?? []);
      stream.context = { rest, trailers: [...trailers, 'x-octets', String(rest.length)] };
      waiting.add(stream);
      sendOn(connection, stream);
    };
    const connection: ServerConnection<Sending> = new ServerConnection(LIMITS, {
      request(stream, request, endStream) {
        bodies.set(stream.id, []);
        const path = 'path' in request ? request.path : '';
        connection.sendFields(stream, [':status', '103', 'x-early', '1'], false);
        connection.sendFields(stream, [':status', '200', 'x-path', path, ...request.fields], false);
        if (endStream) answer(stream, []);
      },
      data(stream, data, endStream) {
        bodies.get(stream.id)?.push(Buffer.from(data));
        connection.consume(stream, data.length);
        if (endStream) answer(stream, []);
      },
      trailers: (stream, fields) => answer(stream, fields),
      refused: (stream) => connection.reset(stream, 2),
      broken: (stream) => waiting.delete(stream),
      writable() {
        for (const stream of waiting) sendOn(connection, stream);
      },
      goaway() {},
      pong() {},
      malformed() {},
    });
    connection.start();
    let preface = 0;
    socket.on('data', (chunk: Buffer) => {
      const skip = Math.min(PREFACE.length - preface, chunk.length);
      preface += skip;
      const fault = connection.receive(chunk.subarray(skip), 0);
      socket.write(Buffer.from(connection.output.take()));
      if (fault !== undefined) socket.destroySoon();
    });
    socket.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe('an nghttp2 client of the server codec', () => {
  async function session(options: http2.ClientSessionOptions = {}): Promise<http2.ClientHttp2Session> {
    const client = http2.connect(`http://127.0.0.1:${await echoServer()}`, options);
    closing.push(() => client.destroy());
    return client;
  }

  async function exchange(
    client: http2.ClientHttp2Session,
    fields: http2.OutgoingHttpHeaders,
    body: Buffer,
    trailers?: http2.OutgoingHttpHeaders,
  ): Promise<{
    early: unknown;
    head: Record<string, unknown>;
    body: Buffer;
    trailers: Record<string, unknown>;
  }> {
    const stream = client.request(
      { ':method': 'POST', ...fields },
      { waitForTrailers: trailers !== undefined },
    );
    if (trailers !== undefined) stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    let early: unknown;
    stream.on('headers', (interim) => {
      early = interim['x-early'];
    });
    let last: Record<string, unknown> = {};
    stream.on('trailers', (came) => {
      last = came;
    });
    stream.end(body);
    const [head] = (await once(stream, 'response')) as [Record<string, unknown>];
    const pieces: Buffer[] = [];
    for await (const piece of stream) pieces.push(piece as Buffer);
    return { early, head, body: Buffer.concat(pieces), trailers: last };
  }

  test('exchanges a head, a body larger than every window, and trailers in both directions', async () => {
    const client = await session();
    const body = Buffer.alloc(1_000_000, 'abc');
    const found = await exchange(client, { ':path': '/p?q', 'x-a': 'b' }, body, { 'x-last': '1' });
    expect(found.early).toBe('1');
    expect(found.head).toMatchObject({ ':status': 200, 'x-path': '/p?q', 'x-a': 'b' });
    expect(found.body.equals(body)).toBe(true);
    expect(found.trailers).toMatchObject({ 'x-last': '1', 'x-octets': '1000000' });
  });

  test('uses many streams at once, with indexed and never indexed fields', async () => {
    const client = await session({ settings: { initialWindowSize: 1000, headerTableSize: 0 } });
    const all = Array.from({ length: 50 }, (_, index) =>
      exchange(
        client,
        {
          ':path': `/${index}`,
          'x-same': 'same',
          'x-secret': `${index}`,
          [http2.sensitiveHeaders]: ['x-secret'],
        },
        Buffer.alloc(5000, String(index)),
      ),
    );
    for (const [index, { head, body }] of (await Promise.all(all)).entries()) {
      expect(head).toMatchObject({ 'x-path': `/${index}`, 'x-same': 'same', 'x-secret': `${index}` });
      expect(body).toEqual(Buffer.alloc(5000, String(index)));
    }
  });

  test('gets PING answered and can reset a stream', async () => {
    const client = await session();
    await once(client, 'connect');
    await new Promise<void>((resolve, reject) => {
      client.ping((error) => (error ? reject(error) : resolve()));
    });
    const stream = client.request({ ':method': 'POST' });
    stream.close(http2.constants.NGHTTP2_CANCEL);
    await once(stream, 'close');
    expect((await exchange(client, {}, Buffer.from('x'))).body.toString()).toBe('x');
  });
});

describe('an nghttp2 server of the client codec', () => {
  interface Exchange {
    readonly events: string[];
    body: string;
  }

  async function ask(
    answer: (stream: http2.ServerHttp2Stream, fields: http2.IncomingHttpHeaders) => void,
    body: Buffer,
    count: number,
    settings: http2.Settings = {},
  ): Promise<Exchange[]> {
    const server = http2.createServer({ settings });
    server.on('stream', answer);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closing.push(() => server.close());
    const socket: Socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    closing.push(() => socket.destroy());
    await once(socket, 'connect');

    return new Promise((resolve, reject) => {
      const exchanges: Exchange[] = [];
      let open = count;
      const streams: ClientStream<Sending>[] = [];
      const of = (stream: ClientStream<Sending>): Exchange => exchanges[(stream.id - 1) / 2] as Exchange;
      const finish = (): void => {
        open--;
        if (open === 0) resolve(exchanges);
      };
      const client: ClientConnection<Sending> = new ClientConnection(LIMITS, {
        mayOpen() {},
        answer(stream, { kind, status, fields }, endStream) {
          of(stream).events.push(
            `${kind} ${status} ${fields.filter((_, at) => fields[at - 1] === 'x-a').join()}`,
          );
          if (endStream) finish();
        },
        data(stream, data, endStream) {
          of(stream).body += data.toString('latin1');
          client.consume(stream, data.length);
          if (endStream) finish();
        },
        trailers(stream, fields) {
          of(stream).events.push(`trailers ${fields.join()}`);
          finish();
        },
        broken: (_stream, how) => reject(new Error(JSON.stringify(how))),
        writable() {
          for (const stream of streams) sendOn(client, stream);
        },
        goaway() {},
        pong() {},
      });
      client.start();
      for (let index = 0; index < count; index++) {
        const fields = [
          ':method',
          'POST',
          ':scheme',
          'http',
          ':authority',
          'a',
          ':path',
          `/${index}`,
          'x-a',
          `${index}`,
        ];
        exchanges.push({ events: [], body: '' });
        const stream = client.request(fields, 'ordinary', false);
        if (stream === undefined) throw new Error('no stream');
        stream.context = { rest: body, trailers: ['x-sum', '7'] };
        streams.push(stream);
        sendOn(client, stream);
      }
      socket.write(Buffer.from(client.output.take()));
      socket.on('data', (chunk: Buffer) => {
        const fault = client.receive(chunk, 0);
        if (fault !== undefined) reject(new Error(fault.reason));
        socket.write(Buffer.from(client.output.take()));
      });
    });
  }

  test('exchanges a head, a body larger than every window, interim answers and trailers', async () => {
    const body = Buffer.alloc(300_000, 'xyz');
    const found = await ask(
      (stream, fields) => {
        stream.additionalHeaders({ ':status': 103, 'x-a': 'early' });
        stream.respond({ ':status': 201, 'x-a': `${fields['x-a']}` }, { waitForTrailers: true });
        let sum: unknown;
        stream.on('trailers', (trailers) => {
          sum = trailers['x-sum'];
        });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': `${sum}` }));
        stream.pipe(stream);
      },
      body,
      3,
      { initialWindowSize: 3000 },
    );
    for (const [index, { events, body: echoed }] of found.entries()) {
      expect(events).toEqual(['interim 103 early', `final 201 ${index}`, 'trailers x-sum,7']);
      expect(echoed === body.toString('latin1')).toBe(true);
    }
  });

  test('may allow no dynamic table', async () => {
    const answer = (stream: http2.ServerHttp2Stream): void => {
      stream.resume();
      stream.respond({ 'x-a': 'b' }, { endStream: true });
    };
    const found = await ask(answer, Buffer.from('abc'), 20, { headerTableSize: 0 });
    expect(found.map(({ events }) => events)).toEqual(Array.from({ length: 20 }, () => ['final 200 b']));
  });
});
