/**
 * How one side of a tunnel closed: `whole` after both of its directions had ended, `dropped` before that without a
 * fault, `broken` by a fault.
 */
type Closing = 'whole' | 'dropped' | 'broken';

/** The events of one side of a tunnel. */
export interface TunnelEvents {
  /** Bytes came; they are valid until this returns. */
  bytes(chunk: Buffer): void;
  /** Nothing more will come. */
  ended(): void;
  /** The peer takes more again. */
  writable(): void;
  closed(how: Closing): void;
}

/** One side of a tunnel: a socket, or a stream that shares its connection with others. */
export interface TunnelSide {
  /** Reports to `events` from here on, beginning with bytes that came already. */
  open(events: TunnelEvents): void;
  /** Passes on bytes, copied by the time this returns. Says whether the peer keeps up; if not, `writable` follows. */
  write(chunk: Buffer): boolean;
  /** Tells the peer that nothing more follows. */
  end(): void;
  /** Takes no more from the peer until `resume`. */
  pause(): void;
  resume(): void;
  /** Closes once what was written has left. */
  close(): void;
  /** Closes at once, as `breakOff` does if the peer has not taken all that was written. */
  drop(): void;
  /** Closes so that the peer cannot mistake what it got for everything. */
  breakOff(): void;
}
