import { expect, it } from 'vitest';
import { Code } from './http2/frames.ts';
import { connectHttp2 } from './http2/raw-http2-client.ts';
import { get, ok } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const HIGHEST = 2 ** 31 - 1;

it('an app over HTTP/1.1 is served during a graceful shutdown and gets Connection: close with its answer', async () => {
  const upstream = await startUpstream(answering(ok('fine')));
  const sidecar = await startSidecar({ upstream });
  const before = await sidecar.connect();
  expect((await before.send(get('/')).response()).head.value('connection')).toBeUndefined();

  sidecar.proxy.enterLameDuck();

  for (const client of [before, await sidecar.connect()]) {
    const answer = await client.send(get('/')).response();
    expect([answer.status, answer.head.value('connection')]).toEqual([200, 'close']);
    expect(await client.closed()).toBe('end');
  }
});

it('an app over HTTP/2 gets GOAWAY at once and its open requests are served to the end', async () => {
  const upstream = await startUpstream();
  const sidecar = await startSidecar({ upstream });
  const client = await connectHttp2(sidecar);
  const stream = client.get('/');
  const arrived = await upstream.request();

  sidecar.proxy.enterLameDuck();

  await client.until(() => client.goaways.length === 2, 'two GOAWAY');
  expect(client.goaways).toEqual([
    { last: HIGHEST, code: Code.NO_ERROR },
    { last: stream, code: Code.NO_ERROR },
  ]);
  arrived.answer(ok('still'));
  expect((await client.answer(stream)).body).toBe('still');
  expect(await client.closed()).toBe('end');
});

it('an app that connects during a graceful shutdown is served once and asked to close', async () => {
  const upstream = await startUpstream(answering(ok('fine')));
  const sidecar = await startSidecar({ upstream, limits: { keepAliveTimeoutMs: 600_000 } });
  sidecar.proxy.enterLameDuck();
  const client = await connectHttp2(sidecar);
  await client.fence();
  expect(client.goaways).toEqual([]);
  expect((await client.answer(client.get('/'))).body).toBe('fine');
  await client.until(() => client.goaways.length === 2, 'two GOAWAY');
  expect(await client.closed()).toBe('end');
});

it('a draining sidecar stays draining when a graceful shutdown is requested', async () => {
  const upstream = await startUpstream();
  const sidecar = await startSidecar({ upstream });
  const [busy, half] = [await sidecar.connect(), await sidecar.connect()];
  busy.send(get('/busy'));
  await upstream.request();
  half.send('GET /late HTTP/1.1\r\n');
  // The first line is there: the sidecar reads connections in turn.
  await sidecar.exchange(get('/x', 'X : refused'));
  const drained = sidecar.proxy.drain(15_000);

  sidecar.proxy.enterLameDuck();

  half.send('Host: app.test\r\n\r\n');
  expectProblem(await half.response(), 'draining');
  busy.destroy();
  await drained;
});
