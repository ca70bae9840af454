import { expect, it } from 'vitest';
import { CHUNKED, chunk, get, ok, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { routeTo, startSidecar } from './sidecar.ts';

/** More than the system keeps for a reader that has stopped reading. */
const LARGE = 'x'.repeat(20_000_000);

it.each([
  ['of known length', request('POST', '/other', [], LARGE)],
  ['chunked', request('POST', '/other', [CHUNKED]) + chunk(LARGE)],
  ['malformed', `${request('POST', '/other', [CHUNKED])}nonsense${LARGE}`],
])('an app that is refused amid a large upload, %s, still gets its answer', async (_, bytes) => {
  const upstream = await startUpstream();
  const sidecar = await startSidecar({ routes: [routeTo(upstream, { match: { pathPrefix: '/api' } })] });
  const client = await sidecar.connect();

  const answer = await client.send(bytes).response();

  expectProblem(answer, 'route_not_found');
  expect(answer.head.value('connection')).toBe('close');
  expect(await client.closed()).toBe('end');
});

it('after a refused request with a small body the connection serves the next request', async () => {
  const upstream = await startUpstream(answering(ok('fine')));
  const sidecar = await startSidecar({ routes: [routeTo(upstream, { match: { pathPrefix: '/api' } })] });
  const client = await sidecar.connect();
  client.send(request('POST', '/other', ['Content-Length: 10']));
  expectProblem(await client.response(), 'route_not_found');

  client.send(`0123456789${get('/api')}`);

  expect((await client.response()).body).toBe('fine');
  expect(upstream.targets).toEqual(['/api']);
});
