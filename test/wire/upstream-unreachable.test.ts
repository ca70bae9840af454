import { expect, it } from 'vitest';
import { refusingPort } from '../support/free-port.ts';
import { get, post } from './messages.ts';
import { expectProblem } from './problem.ts';
import { type RouteOverrides, routeTo, startSidecar } from './sidecar.ts';

it.each<[string, RouteOverrides]>([
  ['that refuses the connection', {}],
  ['that refuses the connection, over TLS', { upstream: { protocol: 'https' } }],
  ['whose name does not resolve', { upstream: { host: 'nowhere.invalid' } }],
])('an upstream %s is answered 502 each time', async (_, route) => {
  const address = { host: '127.0.0.1', port: await refusingPort() };
  const sidecar = await startSidecar({ routes: [routeTo({ address }, route)] });

  expectProblem(await sidecar.exchange(get('/')), 'upstream_unreachable');
  expectProblem(await sidecar.exchange(post('/', 'body')), 'upstream_unreachable');

  await sidecar.idle();
  expect(await sidecar.metric('proxy_errors_total', { route: 'api', error: 'upstream_unreachable' })).toBe(2);
});
