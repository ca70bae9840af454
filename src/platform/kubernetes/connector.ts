import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { connectTcp, connectTls } from '../net/connect.ts';
import type { Clock } from '../time/clock.ts';

/** Bounds a connection up to the end of its handshake. */
const CONNECT_MS = 10_000;

/** Where fetch wants a connection to. */
interface Wanted {
  /** A name or address, IPv6 without brackets. */
  readonly hostname: string;
  readonly protocol: string;
  /** Empty for the protocol's own. */
  readonly port: string;
}

type Made = (error: Error | null, socket: TLSSocket | null) => void;

/** Makes the connections of fetch by the product's rules, in the place of its own function. */
export function connectorFor(options: ConnectionOptions, clock: Clock): (wanted: Wanted, made: Made) => void {
  return ({ hostname, protocol, port }, made) => {
    const secure = protocol === 'https:';
    const to = { ...options, host: hostname, port: Number(port) || (secure ? 443 : 80), noDelay: true };
    // fetch reads what was chosen from the socket, where it has such a property.
    const socket = (
      secure ? connectTls({ ...to, ALPNProtocols: ['http/1.1', 'h2'] }) : connectTcp(to)
    ) as TLSSocket;
    const cancel = clock.after(CONNECT_MS, () => {
      socket.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }));
    });
    const fail = (error: Error): void => {
      cancel();
      made(error, null);
    };
    socket.once('error', fail);
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      cancel();
      socket.off('error', fail);
      made(null, socket);
    });
  };
}
