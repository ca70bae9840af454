import type { Socket } from 'node:net';
import type { Deadline } from '../io/deadline.ts';
import type { Member } from '../io/members.ts';

/** A connection of the app, as the listener has it. */
export interface AppConnection extends Member {
  readonly socket: Socket;
  /** Whether a request is being served. */
  readonly busy: boolean;
  /** Closes a connection on which no request is being served, once what was written has left. */
  closeIdle(): void;
  /** Says to the app, where its protocol has words for it, that no new requests are taken. */
  drain(): void;
}

/** What a version of HTTP is given to speak on. */
export interface Carrier {
  readonly socket: Socket;
  /** Passing, it calls `tooLate`. Set to the time for a first request. */
  readonly deadline: Deadline;
  /** Does what no event of the socket brought about: should it throw, that costs this connection. */
  guarded(act: () => void): void;
}

/** A version of HTTP, spoken on one connection: it is told all that happens there. */
export interface Speaker extends Omit<AppConnection, 'socket' | keyof Member> {
  /** What came; it is there until this returns. */
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
