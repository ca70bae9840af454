import type { OnReadOpts, Socket } from 'node:net';
import type { UpstreamUser } from '../../../../src/proxy/streams/contract.ts';
import { UpstreamFailures } from '../../../../src/proxy/upstream/failures.ts';
import { UpstreamConnection } from '../../../../src/proxy/upstream/http1/connection.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { routeTo } from '../../../wire/sidecar.ts';
import { Sink } from '../../transaction/ported-transaction.ts';

/** A connection without a network that has sent a GET, and what brings the upstream's bytes: a TLS record is a piece. */
export function connectBare(user: UpstreamUser, onReusable: () => void = () => {}) {
  const socket = new Sink({ decodeStrings: false }) as unknown as Socket;
  let onread: OnReadOpts | undefined;
  const connection = new UpstreamConnection(user, {
    route: routeTo({ address: { host: 'up.test', port: 80 } }),
    clock: new ManualClock(),
    failures: new UpstreamFailures('up.test'),
    maxAgeMs: 1e9,
    connect(options) {
      onread = options;
      return socket;
    },
    stands: true,
    onReusable,
    onGone: () => {},
  });
  connection.begin('GET');
  connection.requestSent(0);
  return {
    connection,
    bring(text: string) {
      const { buffer, callback } = onread as OnReadOpts;
      const bytes = Buffer.from(text, 'latin1');
      bytes.copy(buffer as Buffer);
      callback(bytes.length, buffer as Buffer);
    },
  };
}
