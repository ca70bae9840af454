import { describe, expect, it } from 'vitest';
import { FakeBearer, FIRST, TOKEN_MARK } from './fake-bearer.ts';
import { answer, get, ok, post } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { routeTo, startSidecar } from './sidecar.ts';

/** No token that a provider gives is like this: it would end its header. */
const SPLITTING = `Bearer ${TOKEN_MARK}\r\nX-Evil: 1`;

describe('an unexpected failure costs one request and is reported without details', () => {
  it.each([
    ['held', () => new FakeBearer({ held: SPLITTING })],
    ['obtained', () => new FakeBearer({ held: undefined, obtain: async () => SPLITTING })],
  ])('for a token that would split the head, %s', async (_, bearerOf) => {
    const upstream = await startUpstream(answering(ok('fine')));
    const bearer = bearerOf();
    const sidecar = await startSidecar({ upstream, bearer });
    const client = await sidecar.connect();

    expectProblem(await client.send(post('/', 'body')).response(), 'internal');

    bearer.held = FIRST;
    expect((await client.send(get('/')).response()).body).toBe('fine');
    expect(upstream.targets).toEqual(['/']);
    expect(upstream.text).not.toContain('X-Evil');
  });

  it('for a token source that fails when it is asked for another token', async () => {
    const upstream = await startUpstream(answering(answer(401, 'no')));
    const bearer = new FakeBearer({ replace: () => Promise.reject(new Error('unforeseen')) });
    const sidecar = await startSidecar({ upstream, bearer });

    const refused = await sidecar.exchange(get('/'));

    expectProblem(refused, 'internal');
    expect(refused.body).not.toContain('unforeseen');
    await upstream.connections[0]?.closed();
  });

  it.each([
    ['the token is there', () => new FakeBearer()],
    ['the token was waited for', () => new FakeBearer({ held: undefined, obtain: async () => FIRST })],
  ])('for an upstream that cannot be dialled at all, when %s', async (_, bearerOf) => {
    const nowhere = { address: { host: '127.0.0.1', port: 70_000 } };
    const sidecar = await startSidecar({ routes: [routeTo(nowhere)], bearer: bearerOf() });

    expectProblem(await sidecar.exchange(get('/')), 'internal');

    const [line = ''] = sidecar.logLines.filter((logged) => logged.includes('request not completed'));
    expect(JSON.parse(line)).toMatchObject({ level: 'warn', route: 'api', error: 'internal' });
    await sidecar.idle();
  });
});

it('a route with an unknown credential prevents the start', async () => {
  const route = routeTo({ address: { host: '127.0.0.1', port: 1 } }, { credential: 'nobody' });
  await expect(startSidecar({ routes: [route] })).rejects.toMatchObject({ code: 'configuration' });
});
