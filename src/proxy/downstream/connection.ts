import type { Socket } from 'node:net';
import type { Logger } from '../../platform/log/logger.ts';
import type { Member } from '../io/collections.ts';
import type { Deadline } from '../io/deadline.ts';
import type { Network } from '../io/network.ts';
import { asProxyError, logFailure } from '../proxy-error.ts';
import type { ListenerContext } from '../transaction/listener-context.ts';
import type { HalfCloseWatch } from './half-close-watch.ts';

export interface DownstreamConnection extends Member {
  readonly socket: Socket;
  readonly busy: boolean;
  /** Closes unless a request is served, once what was written has left. */
  closeIdle(): void;
  drain(): void;
}

export interface ProtocolHost {
  readonly socket: Socket;
  /** Calls `tooLate`. Set at first to the time for a first request. */
  readonly deadline: Deadline;
  /** For what no event of the socket triggered: if it throws, only this connection is lost. */
  guarded(act: () => void): void;
}

export interface HttpProtocol extends Omit<DownstreamConnection, 'socket' | keyof Member> {
  /** Estimated, unfinished or unread, beside the socket's. Costly: ask seldom. */
  readonly heldBytes: number;
  /** Only upstream connections that its requests do not share. */
  addUpstreamSockets(to: Socket[]): void;
  /** Valid until this returns. */
  bytes(chunk: Buffer): void;
  /** Nothing more will come. */
  ended(): void;
  drained(): void;
  /** The deadline has passed. */
  tooLate(): void;
  closed(): void;
}

export interface DownstreamContext extends ListenerContext {
  readonly network: Network;
  /** Tells which clients have left. */
  readonly peers: HalfCloseWatch;
  /** Counts connections ended for asking too much (RFC 9113 §10.5). */
  readonly http2Abuse: (reason: string) => void;
}

/** If `tell` throws, that is a fault of this program: only this connection and its requests are lost. */
export function guarded(socket: Socket, log: Logger, tell: () => void): void {
  try {
    tell();
  } catch (error) {
    logFailure(log, 'none', asProxyError(error));
    socket.destroy();
  }
}
