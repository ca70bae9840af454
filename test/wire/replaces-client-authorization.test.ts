import { describe, expect, it } from 'vitest';
import { FIRST } from './fake-bearer.ts';
import { CHUNKED, chunk, get, ok, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { type RouteOverrides, startSidecar } from './sidecar.ts';

async function sentUpstream(
  existingAuthorization: NonNullable<RouteOverrides['existingAuthorization']>,
  fields: readonly string[],
): Promise<string[] | undefined> {
  const upstream = await startUpstream(answering(ok()));
  const sidecar = await startSidecar({ upstream, route: { existingAuthorization } });
  expect((await sidecar.exchange(get('/', ...fields))).status).toBe(200);
  return upstream.requests[0]?.head.values('authorization');
}

describe('existingAuthorization: replace', () => {
  it.each([
    ['one', ['Authorization: Basic YTpi']],
    ['another case', ['AUTHORIZATION: Basic YTpi']],
    ['several', ['Authorization: Basic YTpi', 'X-Between: 1', 'authorization: Bearer other']],
    ['an empty one', ['Authorization:']],
    ['one nominated in Connection', ['Authorization: Basic YTpi', 'Connection: authorization']],
    ['none, with a nomination', ['Connection: Authorization']],
    ['none, with a nomination in a list', ['Connection: close , AUTHORIZATION']],
  ])('sends only the token instead of %s', async (_, fields) => {
    expect(await sentUpstream('replace', fields)).toEqual([FIRST]);
  });

  it('removes Authorization from trailers', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(
      `${request('POST', '/', [CHUNKED])}${chunk('data')}0\r\nAuthorization: Basic YTpi\r\n\r\n`,
    );

    expect(upstream.text).not.toContain('YTpi');
  });
});

describe('existingAuthorization: keep', () => {
  it.each([
    ["passes the client's", ['Authorization: Basic YTpi'], ['Basic YTpi']],
    [
      "passes the client's, nominated in Connection",
      ['Authorization: Basic YTpi', 'Connection: authorization'],
      ['Basic YTpi'],
    ],
    ['injects when there is none', [], [FIRST]],
  ])('%s', async (_, fields, expected) => {
    expect(await sentUpstream('keep', fields)).toEqual(expected);
  });
});

describe('existingAuthorization: reject', () => {
  it('injects the token when the client sent none', async () => {
    expect(await sentUpstream('reject', [])).toEqual([FIRST]);
  });

  it.each([
    ['one', ['Authorization: Basic YTpi']],
    ['one nominated in Connection', ['Connection: authorization', 'Authorization: Basic YTpi']],
    ['an empty one', ['authorization: ']],
  ])('refuses %s', async (_, fields) => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream, route: { existingAuthorization: 'reject' } });

    expectProblem(await sidecar.exchange(get('/', ...fields)), 'authorization_not_allowed');

    expect(upstream.text).toBe('');
  });
});
