import { describe, expect, it } from 'vitest';
import { withoutToken } from './fake-bearer.ts';
import { connectHttp2 } from './http2/raw-http2-client.ts';
import { get, message, ok } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { type Sidecar, startSidecar } from './sidecar.ts';

const MADE = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

interface FailureLine {
  readonly requestId: string;
  readonly traceId?: string;
  readonly spanId?: string;
}

function failureLine(sidecar: Sidecar): FailureLine {
  const lines = sidecar.logLines.map((line) => JSON.parse(line) as FailureLine & { msg: string });
  const found = lines.find(({ msg }) => msg === 'request not completed');
  if (found === undefined) throw new Error('no failure was logged');
  return found;
}

describe('an error of the sidecar has a request id', () => {
  it('that the app sent, and the log has it too', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });

    const answer = await sidecar.exchange(get('/', 'X-Request-ID: order-4711/2'));

    expect(answer.head.values('x-request-id')).toEqual(['order-4711/2']);
    expect(failureLine(sidecar).requestId).toBe('order-4711/2');
  });

  it('that is generated if the app sent none', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });

    const [first, second] = [await sidecar.exchange(get('/')), await sidecar.exchange(get('/'))];

    expect(first.head.value('x-request-id')).toMatch(MADE);
    expect(failureLine(sidecar).requestId).toBe(first.head.value('x-request-id'));
    expect(second.head.value('x-request-id')).not.toBe(first.head.value('x-request-id'));
  });

  it.each([
    ['too long', [`X-Request-Id: ${'x'.repeat(129)}`]],
    ['with a character that ends things', ['X-Request-Id: a"b']],
    ['with a space', ['X-Request-Id: a b']],
    ['empty', ['X-Request-Id:']],
    ['given twice', ['X-Request-Id: a', 'X-Request-Id: b']],
  ])('that is generated if the app’s is %s', async (_, fields) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });

    const answer = await sidecar.exchange(get('/', ...fields));

    expect(answer.head.values('x-request-id')).toEqual([expect.stringMatching(MADE)]);
  });

  it('over HTTP/2 too', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });
    const client = await connectHttp2(sidecar);

    const answer = await client.answer(client.get('/', 'x-request-id', 'of-the-app'));

    expect(answer.status).toBe(503);
    expect(answer.head?.value('x-request-id')).toBe('of-the-app');
  });
});

it('request ids change neither an answer of the upstream nor the request it gets', async () => {
  const upstream = await startUpstream(answering(ok('x')));
  const sidecar = await startSidecar({ upstream });

  const answer = await sidecar.exchange(get('/', 'X-Request-Id: a b'));

  expect(answer.head.value('x-request-id')).toBeUndefined();
  const { head } = await upstream.request();
  expect(head.values('x-request-id')).toEqual(['a b']);
  expect(head.value('traceparent')).toBeUndefined();
});

describe('the log line of a failed request has', () => {
  it('method, route, upstream, status, duration and reason, but no path', async () => {
    const upstream = await startUpstream((arrived) => arrived.connection.destroy());
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(get('/secret-path?key=secret-query', 'X-Secret: secret-field'));

    const line = failureLine(sidecar);
    expect(line).toMatchObject({
      level: 'warn',
      route: 'api',
      upstream: upstream.authority,
      method: 'GET',
      status: 502,
      durationMs: expect.any(Number),
      error: 'upstream_protocol_error',
      reason: expect.stringContaining('closed the connection'),
    });
    expect(JSON.stringify(line)).not.toContain('secret');
  });

  it('the trace id that the app sent', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });
    const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];

    await sidecar.exchange(get('/', `Traceparent: 00-${traceId}-${spanId}-01`));

    expect(failureLine(sidecar)).toMatchObject({ traceId, spanId });
  });

  it.each([499, 200])(
    'that it was cut at the end of draining, and the status that the app got: %i',
    async (status) => {
      const upstream = await startUpstream();
      const sidecar = await startSidecar({ upstream });
      const app = await sidecar.connect();
      app.send(get('/'));
      const arrived = await upstream.request();
      if (status === 200) {
        arrived.answer(message('HTTP/1.1 200 OK', ['Content-Length: 9'], 'half'));
        await app.received.contains('half');
      }

      await sidecar.proxy.drain(0);

      expect(failureLine(sidecar)).toMatchObject({
        route: 'api',
        error: 'draining',
        status,
        upstream: upstream.authority,
      });
    },
  );

  it('comes once while requests fail for the same cause', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });
    const client = await sidecar.connect();

    for (let count = 0; count < 25; count++) await client.send(get(`/${count}`)).response();

    expect(sidecar.logLines.filter((line) => line.includes('"request not completed"'))).toHaveLength(1);
  });

  it('the same limit when upstreams break off answers with many statuses', async () => {
    let status = 200;
    const upstream = await startUpstream((arrived) => {
      arrived.connection.send(message(`HTTP/1.1 ${status++} Some`, ['Content-Length: 9'], 'half'));
      arrived.connection.socket.end();
    });
    const sidecar = await startSidecar({ upstream });

    for (let count = 0; count < 25; count++) {
      if (status === 204 || status === 205) status = 206;
      const client = await sidecar.connect();
      await client.send(get('/')).closed();
    }

    expect(sidecar.logLines.filter((line) => line.includes('"request not completed"'))).toHaveLength(1);
  });
});
