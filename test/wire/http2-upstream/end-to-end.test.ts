import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../support/until.ts';
import { FakeBearer, FIRST, SECOND } from '../fake-bearer.ts';
import { type Sidecar, startSidecar } from '../sidecar.ts';
import { CODE, dataFrame, startFrames, TYPE } from './frame-upstream.ts';
import { type Answering, HTTP2, startHttp2 } from './node-upstream.ts';

const GRPC = {
  ':method': 'POST',
  ':path': '/shop.Orders/Place',
  'content-type': 'application/grpc',
  te: 'trailers',
};

async function start(answer: Answering, bearer = new FakeBearer()) {
  const upstream = await startHttp2(answer);
  const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 }, bearer });
  return { upstream, sidecar, app: connectApp(sidecar) };
}

/** An app that speaks HTTP/2. */
function connectApp({ address }: Sidecar): ClientHttp2Session {
  const session = connect(`http://${address.host}:${address.port}`);
  session.on('error', () => {});
  onTestFinished(() => {
    session.destroy();
  });
  return session;
}

interface Answer {
  readonly head: IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: IncomingHttpHeaders;
  readonly code: number;
}

async function call(session: ClientHttp2Session, fields: OutgoingHttpHeaders, body = ''): Promise<Answer> {
  const stream = session.request(fields);
  let trailers: IncomingHttpHeaders = {};
  stream.on('trailers', (came) => {
    trailers = came;
  });
  stream.on('error', () => {});
  const responded = once(stream, 'response') as Promise<[IncomingHttpHeaders]>;
  stream.end(body);
  const [head] = await responded;
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  await new Promise((resolve) => stream.once('close', resolve));
  return { head, body: Buffer.concat(pieces).toString('latin1'), trailers, code: stream.rstCode ?? 0 };
}

describe('a gRPC call over HTTP/2 on both sides', () => {
  it('gets the token, and its messages and status pass', async () => {
    const { upstream, app } = await start(async ({ stream, body }) => {
      const { text } = await body();
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': 'fine' }));
      stream.end(`reply to ${text}`);
    });

    const answer = await call(app, GRPC, 'message');

    expect(answer).toMatchObject({ body: 'reply to message', code: 0 });
    expect(answer.trailers).toMatchObject({ 'grpc-status': '0', 'grpc-message': 'fine' });
    expect(upstream.arrived[0]?.headers).toMatchObject({ authorization: FIRST, te: 'trailers' });
  });

  it('may be answered before the request ends, and both sides go on', async () => {
    const { app } = await start(({ stream }) => {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.write('hello');
      stream.on('data', (piece: Buffer) => stream.write(`echo ${piece}`));
      stream.on('end', () => stream.end('bye'));
    });
    const stream = app.request(GRPC);
    const said: string[] = [];
    stream.on('data', (piece: Buffer) => said.push(piece.toString()));
    await until(() => said.join('') === 'hello');
    for (const word of ['one', 'two', 'three']) {
      said.length = 0;
      stream.write(word);
      await until(() => said.join('') === `echo ${word}`);
    }
    said.length = 0;
    stream.end();
    const [trailers] = (await once(stream, 'trailers')) as [IncomingHttpHeaders];
    expect(trailers['grpc-status']).toBe('0');
    expect(said.join('')).toBe('bye');
  });

  it('that is refused by trailers only is sent again with another token', async () => {
    const bearer = new FakeBearer({ replace: async () => SECOND });
    const { upstream, app } = await start(({ stream, headers }) => {
      const status = headers.authorization === SECOND ? '0' : '16';
      stream.respond(
        { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': status },
        { endStream: true },
      );
    }, bearer);

    const answer = await call(app, GRPC, 'message');

    expect(answer.head['grpc-status']).toBe('0');
    expect(upstream.arrived).toHaveLength(2);
    expect(upstream.connections()).toBe(1);
  });

  it.each([CODE.CANCEL, CODE.REFUSED_STREAM, 0x2])(
    'that the upstream resets with code %i is reset for the app',
    async (code) => {
      const upstream = await startFrames();
      const sidecar = await startSidecar({ upstream, route: { protocol: HTTP2 } });
      const answer = call(connectApp(sidecar), GRPC, 'message');
      const connection = await upstream.connection();
      const { streamId } = await connection.next(TYPE.HEADERS);
      connection.answer(streamId);
      connection.send(dataFrame(streamId, 'some', false));

      connection.reset(streamId, code);

      expect((await answer).code).not.toBe(CODE.NO_ERROR);
    },
  );

  it('that the app cancels is cancelled upstream, and other calls go on', async () => {
    const { upstream, app } = await start(async ({ stream, headers, body }) => {
      if (headers['x-wait'] !== undefined) return;
      await body();
      stream.respond({ ':status': 200 });
      stream.end('x');
    });
    const stream = app.request({ ...GRPC, 'x-wait': '1' });
    stream.on('error', () => {});
    stream.write('some');
    await until(() => upstream.arrived.length > 0);

    stream.close(0x8);

    await until(() => upstream.arrived[0]?.stream.destroyed === true);
    expect(upstream.arrived[0]?.stream.rstCode).toBe(0x8);
    expect((await call(app, GRPC)).body).toBe('x');
    expect(upstream.connections()).toBe(1);
  });
});

it('many simultaneous calls of any size share one connection on each side', async () => {
  const { upstream, app } = await start(async ({ stream, headers, body }) => {
    const { text } = await body();
    stream.respond({ ':status': 200, 'x-path': String(headers[':path']) });
    stream.end(text);
  });
  const bodies = Array.from({ length: 60 }, (_, index) =>
    String(index).repeat(1 + ((index * 7919) % 40_000)),
  );

  const answers = await Promise.all(
    bodies.map((body, index) => call(app, { ':method': 'POST', ':path': `/${index}` }, body)),
  );

  answers.forEach((answer, index) => {
    expect(answer.head['x-path']).toBe(`/${index}`);
    expect(answer.body === bodies[index]).toBe(true);
  });
  expect(upstream.connections()).toBe(1);
});
