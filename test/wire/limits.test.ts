import { describe, expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok, post, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const LIMITS = { headerBytes: 512, headerCount: 10, targetBytes: 64, requestBodyBytes: 100 };

/** A head of exactly `size` bytes. */
function headOf(size: number): string {
  const head = get('/', 'X-Padding: ');
  return get('/', `X-Padding: ${'x'.repeat(size - head.length)}`);
}

/** A request with `count` fields, Host among them. */
function fieldsOf(count: number): string {
  return get('/', ...Array.from({ length: count - 1 }, (_, index) => `X-${index}: y`));
}

async function start() {
  const upstream = await startUpstream(answering(ok('fine')));
  return { upstream, sidecar: await startSidecar({ upstream, limits: LIMITS }) };
}

describe('a request at the limit passes', () => {
  it.each([
    ['head', headOf(512)],
    ['field count', fieldsOf(10)],
    ['target', get(`/${'x'.repeat(63)}`)],
    ['body', post('/', 'x'.repeat(100))],
    ['chunked body', request('POST', '/', [CHUNKED]) + chunk('x'.repeat(100)) + LAST_CHUNK],
  ])('%s', async (_, bytes) => {
    const { sidecar } = await start();

    expect((await sidecar.exchange(bytes)).body).toBe('fine');
  });
});

describe('a request over the limit is refused, and nothing is sent upstream', () => {
  it.each([
    ['head', headOf(513), 'headers_too_large'],
    ['field count', fieldsOf(11), 'headers_too_large'],
    [
      'a head without end',
      `GET / HTTP/1.1\r\nHost: app.test\r\n${'X: y\r\n'.repeat(1000)}`,
      'headers_too_large',
    ],
    [
      'a field without end',
      `GET / HTTP/1.1\r\nHost: app.test\r\nX: ${'y'.repeat(10_000)}`,
      'headers_too_large',
    ],
    ['target', get(`/${'x'.repeat(64)}`), 'uri_too_long'],
    ['announced body', request('POST', '/', ['Content-Length: 101']), 'request_too_large'],
  ] as const)('%s', async (_, bytes, code) => {
    const { upstream, sidecar } = await start();
    const client = await sidecar.connect();

    const answer = await client.send(bytes).response();

    expectProblem(answer, code);
    expect(answer.head.value('connection')).toBe('close');
    await client.closed();
    expect(upstream.text).toBe('');
  });
});

it('a chunked body that grows over the limit is refused, and never complete upstream', async () => {
  const { upstream, sidecar } = await start();
  const client = await sidecar.connect();

  client.send(request('POST', '/', [CHUNKED]) + chunk('x'.repeat(60)));
  client.send(chunk('x'.repeat(60)) + LAST_CHUNK);

  expectProblem(await client.response(), 'request_too_large');
  await client.closed();
  await sidecar.fence();
  expect(upstream.text).not.toMatch(/\r\n0\r\n/);
});

it('without a limit a body may have any size', async () => {
  const upstream = await startUpstream(answering(ok('fine')));
  const sidecar = await startSidecar({ upstream });

  expect((await sidecar.exchange(post('/', 'x'.repeat(3_000_000)))).body).toBe('fine');

  expect((await upstream.requests[0]?.body())?.text).toHaveLength(3_000_000);
});

describe('requests in flight', () => {
  it('over the limit get 503 overloaded until one has ended', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, limits: { maxInFlight: 2 } });
    const [one, two, three] = await Promise.all([sidecar.connect(), sidecar.connect(), sidecar.connect()]);
    one.send(get('/1'));
    two.send(get('/2'));
    const first = await upstream.request();
    await upstream.request();

    const refused = await three.send(get('/3')).response();
    expectProblem(refused, 'overloaded');
    expect(refused.head.value('retry-after')).toBe('1');

    first.answer(ok('done'));
    await one.response();
    await until(async () => (await sidecar.metric('proxy_requests_in_flight')) === 1);
    const again = await sidecar.connect();
    again.send(get('/4'));
    expect((await upstream.request()).head.target).toBe('/4');
    expect(upstream.targets).toHaveLength(3);
  });

  it('whose apps have left are not counted', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, limits: { maxInFlight: 1 } });
    const gone = await sidecar.connect();
    gone.send(get('/1'));
    await upstream.request();
    gone.destroy();
    await sidecar.idle();

    const client = await sidecar.connect();
    client.send(get('/2'));
    (await upstream.request()).answer(message('HTTP/1.1 200 OK', ['Content-Length: 0']));

    expect((await client.response()).status).toBe(200);
  });
});
