import type { Socket } from 'node:net';
import type { Logger } from '../../platform/log/logger.ts';
import type { Member } from '../io/collections.ts';
import type { Deadline } from '../io/deadline.ts';
import type { Network } from '../io/network.ts';
import { asProxyError, logFailure } from '../proxy-error.ts';
import type { ListenerContext } from '../transaction/listener-context.ts';
import type { PeerWatch } from './peer-watch.ts';

/** An app's connection, as the listener sees it. */
export interface AppConnection extends Member {
  readonly socket: Socket;
  /** Whether a request is being served. */
  readonly busy: boolean;
  /** Closes a connection on which no request is being served, once what was written has left. */
  closeIdle(): void;
  /** Tells the app, if its protocol can, that no new requests are taken. */
  drain(): void;
}

/** What a version of HTTP is spoken on. */
export interface Carrier {
  readonly socket: Socket;
  /** Calls `tooLate` when it passes. Initially set to the time for a first request. */
  readonly deadline: Deadline;
  /** Runs what no event of the socket triggered: if it throws, only this connection is lost. */
  guarded(act: () => void): void;
}

/** A version of HTTP, spoken on one connection: it receives all events there. */
export interface Speaker extends Omit<AppConnection, 'socket' | keyof Member> {
  /** What it holds beside the socket that is unfinished or unread, in bytes, about. Adds up everything: to be asked seldom. */
  readonly heldBytes: number;
  /** Adds the connections to upstreams that its requests have to themselves. */
  addUpstreamSockets(to: Socket[]): void;
  /** What came; valid until this returns. */
  bytes(chunk: Buffer): void;
  /** The app has ended its side: nothing more will come. */
  ended(): void;
  /** The system has taken all that was written. */
  drained(): void;
  /** The deadline has passed. */
  tooLate(): void;
  /** The connection is gone. */
  closed(): void;
}

/** What every connection of one listener shares. */
export interface AppContext extends ListenerContext {
  readonly network: Network;
  /** Tells which clients have left. */
  readonly peers: PeerWatch;
  /** Observes connections that were ended because they asked for more than they may (RFC 9113 §10.5), by reason. */
  readonly http2Abuse: (reason: string) => void;
}

/**
 * Tells a connection what happened to it. `tell` does not throw; should it, that is a fault of this program, which
 * costs only that connection and its requests: not the process, nor the requests of others.
 */
export function guarded(socket: Socket, log: Logger, tell: () => void): void {
  try {
    tell();
  } catch (error) {
    logFailure(log, 'none', asProxyError(error));
    socket.destroy();
  }
}
