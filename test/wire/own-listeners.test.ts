/** Whoever reaches the forward proxy reaches what listens on loopback as if from there, unless it is kept from it. */

import { describe, expect, it } from 'vitest';
import { message, ok } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { forwardTo, startSidecar } from './sidecar.ts';

const NOBODY = { address: { host: 'listed.test', port: 80 } };

const connectTo = (authority: string) => message(`CONNECT ${authority} HTTP/1.1`, [`Host: ${authority}`]);
const getOf = (authority: string) => message(`GET http://${authority}/ HTTP/1.1`, [`Host: ${authority}`]);

async function start() {
  const listener = await startUpstream(answering(ok('secret')), 'plain');
  const other = await startUpstream(answering(ok('public')), 'plain');
  const sidecar = await startSidecar({
    otherListeners: [listener.address],
    forwardProxy: forwardTo(NOBODY, {}, { otherHosts: 'pass', connect: 'intercept' }),
  });
  return { listener, other, sidecar };
}

describe.each(['127.0.0.1', 'localhost', '0.0.0.0', '[::ffff:127.0.0.1]', '127.1', '2130706433'])(
  'a listener of the same program, as %s',
  (host) => {
    it.each([
      ['a request', getOf],
      ['a tunnel', connectTo],
    ])('is refused as a destination of %s', async (_, asking) => {
      const { listener, sidecar } = await start();
      const answer = await sidecar.exchange(asking(`${host}:${listener.address.port}`));
      expectProblem(answer, 'destination_not_allowed');
      expect(listener.requests).toHaveLength(0);
    });
  },
);

it.each([
  ['a request', getOf],
  ['a tunnel', connectTo],
])('the proxy’s own listener is refused as a destination of %s', async (_, asking) => {
  const { sidecar } = await start();
  const answer = await sidecar.exchange(asking(`127.0.0.1:${sidecar.address.port}`));
  expectProblem(answer, 'destination_not_allowed');
});

it('other programs on loopback are allowed as before', async () => {
  const { other, sidecar } = await start();
  expect((await sidecar.exchange(getOf(other.authority))).body).toBe('public');
});

it('a listener of the same program is allowed if it is listed', async () => {
  const listener = await startUpstream(answering(ok('listed')));
  const sidecar = await startSidecar({
    otherListeners: [listener.address],
    forwardProxy: forwardTo(listener, {}, { otherHosts: 'pass' }),
  });
  expect((await sidecar.exchange(getOf(listener.authority))).body).toBe('listed');
});
