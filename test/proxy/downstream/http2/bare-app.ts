import type { Socket } from 'node:net';
import { AcceptedConnection } from '../../../../src/proxy/downstream/accepted-connection.ts';
import type { HalfCloseWatch } from '../../../../src/proxy/downstream/half-close-watch.ts';
import { systemNetwork } from '../../../../src/proxy/io/network.ts';
import { settle } from '../../../support/manual-clock.ts';
import { createPorts, type Ports, Sink } from '../../transaction/ported-transaction.ts';

/** An app that has connected where there is no network, and speaks HTTP/2 as the test gives it. */
export function connectBare(ports: Ports = {}) {
  const created = createPorts(ports);
  const sink = new Sink({ decodeStrings: false, highWaterMark: 64 * 1024, allowHalfOpen: true });
  Object.assign(sink, { destroySoon: () => sink.end(() => sink.destroy()) });
  const peers = { watch: () => () => {} } as unknown as HalfCloseWatch;
  const context = { ...created.context, network: systemNetwork, peers, http2Abuse: () => {} };
  const connection = new AcceptedConnection(sink as unknown as Socket, context, () => {});
  return {
    ...created,
    context,
    connection,
    sink,
    /** The app sends this, and it is read. */
    async send(...octets: Buffer[]) {
      sink.push(Buffer.concat(octets));
      await settle();
    },
  };
}
