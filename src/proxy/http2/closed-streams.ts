import { ENDED, FORGOTTEN, RESET_RECEIVED, RESET_SENT, type StreamState } from './stream-state.ts';

/** Late frames come soon: this many ended streams are told from streams that never were. */
const ENDED_KEPT = 64;

/** Frames in flight to a stream when it was reset may take a round trip, in which many others may be reset. */
const RESETS_KEPT = 256;

/** How the streams closed last have ended: two rings, so that many ends do not push out a reset. */
export class ClosedStreams {
  readonly #ended = new Int32Array(ENDED_KEPT);
  #nextEnded = 0;
  /** Negative where the peer reset it; created with the first reset. */
  #resets: Int32Array | undefined;
  #nextReset = 0;

  /** @param streamId of a stream that has been closed; added once */
  add(streamId: number, state: StreamState): void {
    if (state === ENDED) {
      this.#ended[this.#nextEnded] = streamId;
      this.#nextEnded = (this.#nextEnded + 1) % ENDED_KEPT;
      return;
    }
    this.#resets ??= new Int32Array(RESETS_KEPT);
    this.#resets[this.#nextReset] = state === RESET_RECEIVED ? -streamId : streamId;
    this.#nextReset = (this.#nextReset + 1) % RESETS_KEPT;
  }

  /** The state of a stream that is closed. */
  stateOf(streamId: number): StreamState {
    if (this.#resets?.includes(streamId)) return RESET_SENT;
    if (this.#resets?.includes(-streamId)) return RESET_RECEIVED;
    return this.#ended.includes(streamId) ? ENDED : FORGOTTEN;
  }
}
