import { connect, type TLSSocket } from 'node:tls';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../../src/platform/time/clock.ts';
import { type UpstreamUser, WithoutRequest } from '../../../../src/proxy/streams/contract.ts';
import { UpstreamFailures } from '../../../../src/proxy/upstream/failures.ts';
import { UpstreamConnection } from '../../../../src/proxy/upstream/http1/connection.ts';
import { selfSigned } from '../../../wire/certificate.ts';
import { get, ok } from '../../../wire/messages.ts';
import { startUpstream } from '../../../wire/raw-upstream.ts';
import { routeTo } from '../../../wire/sidecar.ts';

const CERTIFICATE = selfSigned('127.0.0.1');

/** Each comes by itself, and is passed on so. */
const RECORD_BYTES = 4096;

/** Larger than one record, so that it ends in a later piece than the one on which its reader fell behind. */
const ANSWER = ok('x'.repeat(40_000));

it('a connection that was paused for a slow reader is read again for the next request', async () => {
  const upstream = await startUpstream((arrived) => {
    (arrived.connection.socket as TLSSocket).setMaxSendFragment(RECORD_BYTES);
    arrived.answer(ANSWER);
  }, CERTIFICATE);
  let connected = Promise.withResolvers<void>();
  let ended = Promise.withResolvers<number>();
  let bytes = 0;
  /** Falls behind on every piece, and never catches up. */
  const slow: UpstreamUser = Object.assign(new WithoutRequest(), {
    onConnected: () => connected.resolve(),
    onData: (slice) => {
      bytes += slice.length;
    },
    onReadEnd: () => connection.pause(),
    onEnd: () => ended.resolve(bytes),
    onError: (error) => ended.reject(error),
  } satisfies Partial<UpstreamUser>);
  let pausedAtTheEnd = false;
  const connection = new UpstreamConnection(slow, {
    route: routeTo(upstream),
    clock: systemClock,
    failures: new UpstreamFailures('upstream.test'),
    maxAgeMs: 60_000,
    connect: (onread) => {
      const options = { ...upstream.address, onread, ca: CERTIFICATE.cert, allowHalfOpen: true };
      return connect(options);
    },
    onReusable: () => {
      pausedAtTheEnd = connection.socket.isPaused();
    },
    onGone: () => {},
  });
  onTestFinished(() => connection.abandon());
  const ask = (): Promise<number> => {
    bytes = 0;
    ended = Promise.withResolvers();
    connection.begin('GET');
    connection.writer.text(get('/'));
    connection.requestSent(systemClock.monotonicMs());
    connection.writer.flush();
    return ended.promise;
  };
  await connected.promise;
  expect(await ask()).toBe(40_000);
  expect(pausedAtTheEnd).toBe(false);

  // Its end may have come unread, so that it is looked at first.
  connected = Promise.withResolvers();
  connection.lend(slow, Number.POSITIVE_INFINITY, systemClock.now());
  await connected.promise;

  expect(await ask()).toBe(40_000);
});
