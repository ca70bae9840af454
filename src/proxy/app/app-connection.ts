import type { Socket } from 'node:net';
import type { Member } from '../io/collections.ts';
import type { Deadline } from '../io/deadline.ts';

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
