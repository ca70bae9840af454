import type { DataPiece } from './frame.ts';

/** Frames that a stream may cost beside its DATA: so many may be on their way as it is reset, and earn as it ends. */
export const FRAMES_PER_STREAM = 4;

/** What the peer may still send for streams that this side has reset: it had leave to, and did not know. */
export class RunOut {
  #bytes = 0;
  #frames = 0;

  /** This side resets a stream on which so many octets of DATA were allowed. */
  reset(allowedBytes: number): void {
    this.#bytes += allowedBytes;
    this.#frames += FRAMES_PER_STREAM;
  }

  /** DATA for a stream that was reset: whether it was on its way. A frame that was cut counts once, by its last piece. */
  data({ windowBytes, last }: DataPiece): boolean {
    const wasAllowed = windowBytes > 0 && windowBytes <= this.#bytes;
    this.#bytes = Math.max(0, this.#bytes - windowBytes);
    return wasAllowed || !last;
  }

  /** Another frame for a stream that is closed: whether it was on its way. */
  frame(): boolean {
    if (this.#frames === 0) return false;
    this.#frames--;
    return true;
  }
}
