import type { Fields } from '../../http/fields.ts';
import type { Member } from '../../io/collections.ts';
import type { Http2Outlet } from './outlet.ts';

/** What a stream takes by itself. */
export const STREAM_BYTES = 6 * 1024;

/** A stream of the app, which receives events from its connection: a request that is served, or one that is refused. */
export interface ConnectionStream extends Member {
  /** Whether the app has ended its side of the stream. */
  readonly inputEnded: boolean;
  /** How long the app may take to read what it was answered last. */
  readonly patienceMs: number;
  /** What it holds in memory, about. */
  readonly heldBytes: number;
  /** A piece of the body came; valid until this returns. */
  takeData(data: Buffer, endStream: boolean): void;
  takeTrailers(fields: Fields): void;
  /** Everything from one read has been passed. */
  afterRead(): void;
  /** The app has reset the stream, or left; nothing more comes and nothing can be sent. */
  gone(byReset: boolean): void;
  /** The stream's window has grown. */
  mayGoOn(): void;
  /** The app will send nothing more, and its request is incomplete. */
  leave(): void;
}

/** A stream's connection, as the stream sees it. */
export interface Http2StreamCarrier {
  readonly outlet: Http2Outlet<ConnectionStream>;
  /** The stream is over on this side. */
  released(stream: ConnectionStream): void;
}
