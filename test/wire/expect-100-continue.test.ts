import { describe, expect, it } from 'vitest';
import { FakeBearer, FIRST, withoutToken } from './fake-bearer.ts';
import { answer, CHUNKED, chunk, get, LAST_CHUNK, message, ok, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import type { RawClient } from './raw-client.ts';
import { type Script, startUpstream } from './raw-upstream.ts';
import { routeTo, startSidecar } from './sidecar.ts';

const EXPECTING = request('POST', '/', ['Expect: 100-continue', 'Content-Length: 5']);

/** An upstream that asks for the body when it is expected to, and answers with it. */
const echo: Script = async (arrived) => {
  if (arrived.head.value('expect')?.toLowerCase() === '100-continue')
    arrived.answer('HTTP/1.1 100 Continue\r\n\r\n');
  arrived.answer(ok(`got ${(await arrived.body()).text}`));
};

/** Behaves as curl does: sends the body once it is asked to, and reads the final answer. */
async function sendWhenAsked(client: RawClient, head: string, body: string) {
  client.send(head);
  const first = await client.head();
  if (first.status !== 100)
    return { asked: false, status: first.status, body: (await client.body(first)).text };
  const final = await client.send(body).response();
  return { asked: true, status: final.status, body: final.body };
}

describe('Expect: 100-continue', () => {
  it.each([
    ['of known length', EXPECTING, 'hello'],
    ['chunked', request('PUT', '/', ['expect: 100-Continue', CHUNKED]), `${chunk('hello')}${LAST_CHUNK}`],
  ])('with a body %s is sent to the upstream with the token before the body', async (_, head, body) => {
    const upstream = await startUpstream(echo);
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    expect(await sendWhenAsked(client, head, body)).toEqual({ asked: true, status: 200, body: 'got hello' });

    expect(upstream.requests.map((arrived) => arrived.head.values('authorization'))).toEqual([[FIRST]]);
    // The connection is still in step.
    expect(await client.send(get('/next')).response()).toMatchObject({ status: 200, body: 'got ' });
  });

  it('does not hold back a client that sends the body without waiting', async () => {
    const upstream = await startUpstream(echo);
    const sidecar = await startSidecar({ upstream });

    expect((await sidecar.exchange(`${EXPECTING}hello`)).body).toBe('got hello');
  });

  it('passes the upstream’s refusal to the app', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer(answer(417, 'no', 'Connection: close')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    expect(await sendWhenAsked(client, EXPECTING, 'hello')).toMatchObject({ status: 417, body: 'no' });
  });

  it('does not delay an answer that the upstream sends at once, without 100', async () => {
    const upstream = await startUpstream(async (arrived) => {
      arrived.answer(ok('early'));
    });
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    expect(await sendWhenAsked(client, EXPECTING, 'hello')).toMatchObject({ status: 200, body: 'early' });
  });

  it('waits for the token before the body is requested', async () => {
    const upstream = await startUpstream(echo);
    const granted = Promise.withResolvers<string>();
    const asked = Promise.withResolvers<void>();
    const obtain = (): Promise<string> => {
      asked.resolve();
      return granted.promise;
    };
    const sidecar = await startSidecar({ upstream, bearer: new FakeBearer({ held: undefined, obtain }) });
    const client = await sidecar.connect();

    const sent = sendWhenAsked(client, EXPECTING, 'hello');
    await asked.promise;
    expect(client.received.text).toBe('');
    granted.resolve(FIRST);

    expect(await sent).toEqual({ asked: true, status: 200, body: 'got hello' });
  });

  it('with another expectation is passed on unchanged', async () => {
    const upstream = await startUpstream(async (arrived) => {
      arrived.answer(ok(`got ${(await arrived.body()).text}`));
    });
    const sidecar = await startSidecar({ upstream });

    const answered = await sidecar.exchange(request('POST', '/', ['Expect: a-miracle'], 'hello'));

    expect([answered.body, answered.interim]).toEqual(['got hello', []]);
    expect(upstream.requests[0]?.head.value('expect')).toBe('a-miracle');
  });

  it('brings no interim answer to an HTTP/1.0 client', async () => {
    const upstream = await startUpstream(echo);
    const sidecar = await startSidecar({ upstream });
    const head = message('POST / HTTP/1.0', ['Host: app.test', 'Expect: 100-continue', 'Content-Length: 5']);

    const answered = await sidecar.exchange(`${head}hello`);

    expect([answered.status, answered.body, answered.interim]).toEqual([200, 'got hello', []]);
  });
});

describe('an error of the sidecar to a request with Expect: 100-continue is not preceded by 100', () => {
  it('for 503 without a token', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });

    const refused = await sidecar.exchange(EXPECTING);

    expectProblem(refused, 'token_unavailable');
    expect(refused.interim).toEqual([]);
    expect(upstream.text).toBe('');
  });

  it('for 404 without a route', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ routes: [routeTo(upstream, { match: { pathPrefix: '/other' } })] });

    const refused = await sidecar.exchange(EXPECTING);

    expectProblem(refused, 'route_not_found');
    expect(refused.interim).toEqual([]);
  });

  it('for 403 because of the client’s Authorization', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, route: { existingAuthorization: 'reject' } });
    const fields = ['Authorization: Basic YTpi', 'Expect: 100-continue', 'Content-Length: 5'];

    const refused = await sidecar.exchange(request('POST', '/', fields));

    expectProblem(refused, 'authorization_not_allowed');
    expect(refused.interim).toEqual([]);
    expect(upstream.text).toBe('');
  });

  it('for 413 when the declared body is over the limit', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, limits: { requestBodyBytes: 4 } });

    const refused = await sidecar.exchange(EXPECTING);

    expectProblem(refused, 'request_too_large');
    expect(refused.interim).toEqual([]);
    expect(upstream.text).toBe('');
  });
});
