/**
 * How one side of a tunnel closed: `whole` after both of its directions had ended, `dropped` before that and without a
 * fault, `broken` by one.
 */
export type Closing = 'whole' | 'dropped' | 'broken';

/** What one side of a tunnel tells. */
export interface TunnelEvents {
  /** Bytes came; they are there until this returns. */
  bytes(chunk: Buffer): void;
  /** Nothing more will come. */
  ended(): void;
  /** The peer takes more again. */
  writable(): void;
  closed(how: Closing): void;
}

/** One side of a tunnel: a socket, or a stream that shares its connection with others. */
export interface TunnelSide {
  /** Tells `events` from here on; first of what came already. */
  open(events: TunnelEvents): void;
  /** Passes on bytes, which are copied when this returns. Says whether the peer keeps up; if not, `writable` tells when. */
  write(chunk: Buffer): boolean;
  /** Says to the peer that nothing more follows. */
  end(): void;
  /** Takes no more from the peer until `resume`. */
  pause(): void;
  resume(): void;
  /** Closes once what was written has left. */
  close(): void;
  /** Closes at once. */
  drop(): void;
  /** Closes so that the peer cannot take what it got for all there was. */
  breakOff(): void;
}
