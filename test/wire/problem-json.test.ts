import { expect, it } from 'vitest';
import { withoutToken } from './fake-bearer.ts';
import { get } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

it('the sidecar’s own errors are problem details', async () => {
  const upstream = await startUpstream();
  const sidecar = await startSidecar({ upstream, bearer: withoutToken() });

  const answer = await sidecar.exchange(get('/some/path'));

  expectProblem(answer, 'token_unavailable');
  expect(Object.keys(JSON.parse(answer.body)).toSorted()).toEqual([
    'code',
    'detail',
    'status',
    'title',
    'type',
  ]);
});

it('problem details quote neither field values nor bytes of the upstream', async () => {
  const upstream = await startUpstream(answering('UPSTREAM-BYTES\r\n\r\n'));
  const sidecar = await startSidecar({ upstream });

  const broken = await sidecar.exchange(
    get('/', 'Cookie: CLIENT-VALUE', 'Authorization: Basic CLIENT-VALUE'),
  );
  const refused = await sidecar.exchange(get('/', 'X-Bad: CLIENT-VALUE\0'));

  expectProblem(broken, 'upstream_protocol_error');
  expectProblem(refused, 'bad_request');
  expect(broken.body + refused.body).not.toMatch(/UPSTREAM-BYTES|CLIENT-VALUE/);
});

it('a problem from the upstream is distinguishable from the sidecar’s own', async () => {
  const problem = '{"code":"route_not_found"}';
  const fields = 'Content-Type: application/problem+json\r\ntoken-sidecar-error: route_not_found';
  const upstream = await startUpstream(
    answering(`HTTP/1.1 404 Not Found\r\n${fields}\r\nContent-Length: ${problem.length}\r\n\r\n${problem}`),
  );
  const sidecar = await startSidecar({ upstream });

  const answer = await sidecar.exchange(get('/'));

  expect([answer.status, answer.body]).toEqual([404, problem]);
  expect(answer.head.value('token-sidecar-error')).toBeUndefined();
});
