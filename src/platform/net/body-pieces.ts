import type { Server, Socket } from 'node:net';
import { ExpiringMap } from '../limits/lru-map.ts';
import type { Clock } from '../time/clock.ts';
import { http } from './node-http.ts';

/** A body may come in so many pieces, whatever their size, */
const ANY_PIECES = 64;

/** and in one more for each of these, in bytes. */
const PIECE_BYTES = 256;

/** Who sent more of them comes again after so long. */
const HELD_BACK_MS = 60_000;

/** Of addresses; beyond it the one that was held back first may come. */
const MAX_HELD_BACK = 4096;

interface PieceBound {
  /** The option `IncomingMessage` of the server. */
  readonly IncomingMessage: typeof http.IncomingMessage;
  /** Has the server end connections of who is held back, before anything else sees them. */
  holdBack(server: Server): void;
}

/**
 * Bounds the pieces in which bodies come to a server of Node's. It makes one of each chunk and of each record of TLS, and keeps it until
 * it is read: one octet takes 300 bytes and a microsecond. A body in more of them ends its connection. What has come already is
 * taken apart all the same, for some 10 ms: so its address is held back.
 */
export function boundPieces(clock: Pick<Clock, 'monotonicMs'>): PieceBound {
  const heldBack = new ExpiringMap<string, true>(clock, MAX_HELD_BACK);

  class BoundedRequest extends http.IncomingMessage {
    #pieces = 0;
    #bytes = 0;

    override push(piece: Buffer | null): boolean {
      if (this.destroyed) return false;
      if (piece === null) return super.push(piece);
      this.#pieces += 1;
      this.#bytes += piece.length;
      if (this.#pieces <= ANY_PIECES + this.#bytes / PIECE_BYTES) return super.push(piece);
      heldBack.set(String(this.socket.remoteAddress), true, HELD_BACK_MS);
      this.destroy(new Error(`the body came in ${this.#pieces} pieces of ${this.#bytes} bytes together`));
      return false;
    }
  }

  return {
    IncomingMessage: BoundedRequest,
    holdBack(server) {
      server.prependListener('connection', (socket: Socket) => {
        if (heldBack.get(String(socket.remoteAddress)) === true) socket.destroy();
      });
    },
  };
}
