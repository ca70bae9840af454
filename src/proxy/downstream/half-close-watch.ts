import type { Socket } from 'node:net';
import type { Clock } from '../../platform/time/clock.ts';
import type { Network } from '../io/network.ts';
import type { Peer } from '../io/peer-socket.ts';

/** Most answers are done before it. */
const FIRST_LOOK_MS = 50;

/** Between looks while a first verdict is awaited. */
const MIN_PAUSE_MS = 250;

/** Between looks at peers that were there before. */
const USUAL_PAUSE_MS = 1_000;

/** So looking takes at most a twentieth of a core. */
const PAUSE_PER_LOOK = 20;

/** A look that calls for more was slow because the process stood still. */
const MAX_PAUSE_MS = 10_000;

/** A socket that moves within the table may be missed once. */
const MISSES_OF_THE_GONE = 2;

interface Watched {
  readonly socket: Socket;
  readonly onLeft: () => void;
  /** Looks that did not find it. */
  misses: number;
  seen: boolean;
}

type State =
  | { readonly kind: 'resting' }
  | { readonly kind: 'waiting'; readonly atMs: number; readonly cancel: () => void }
  | { readonly kind: 'looking' };

const RESTING: State = { kind: 'resting' };

/**
 * One expensive look serves all clients that are watched after a half-close.
 * A peer that cannot be found counts as gone: it is on another machine, or the system is not Linux.
 */
export class HalfCloseWatch {
  readonly #clock: Clock;
  readonly #network: Pick<Network, 'findPeers'>;
  readonly #watched = new Set<Watched>();
  #state: State = RESTING;
  /** On the monotonic clock. */
  #rested = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, network: Pick<Network, 'findPeers'>) {
    this.#clock = clock;
    this.#network = network;
  }

  /**
   * Calls `onLeft`, once, when nobody holds the other end.
   * @returns what ends the watch.
   */
  watch(socket: Socket, onLeft: () => void): () => void {
    const watched: Watched = { socket, onLeft, misses: 0, seen: false };
    this.#watched.add(watched);
    this.#lookAt(this.#clock.monotonicMs() + FIRST_LOOK_MS);
    return () => this.#forget(watched);
  }

  #forget(watched: Watched): void {
    this.#watched.delete(watched);
    if (this.#watched.size > 0 || this.#state.kind !== 'waiting') return;
    this.#state.cancel();
    this.#state = RESTING;
  }

  #lookAt(wantedMs: number): void {
    const atMs = Math.max(wantedMs, this.#rested);
    if (this.#state.kind === 'looking') return;
    if (this.#state.kind === 'waiting') {
      if (this.#state.atMs <= atMs) return;
      this.#state.cancel();
    }
    const cancel = this.#clock.after(atMs - this.#clock.monotonicMs(), () => void this.#look());
    this.#state = { kind: 'waiting', atMs, cancel };
  }

  async #look(): Promise<void> {
    this.#state = { kind: 'looking' };
    const startedMs = this.#clock.monotonicMs();
    // Those added meanwhile wait for the next look.
    const asked = [...this.#watched];
    const peers = await this.#network.findPeers(asked.map(({ socket }) => socket));
    const nowMs = this.#clock.monotonicMs();
    const pauseMs = Math.min(MAX_PAUSE_MS, PAUSE_PER_LOOK * (nowMs - startedMs));
    this.#rested = nowMs + Math.max(MIN_PAUSE_MS, pauseMs);
    this.#state = RESTING;
    asked.forEach((watched, index) => {
      if (this.#watched.has(watched)) this.#judge(watched, peers[index] ?? 'unknown');
    });
    this.#lookAgain(nowMs);
  }

  #judge(watched: Watched, peer: Peer): void {
    if (peer === 'unasked') return;
    watched.seen = true;
    watched.misses = peer === 'unlisted' ? watched.misses + 1 : 0;
    if (peer === 'held' || (peer === 'unlisted' && watched.misses < MISSES_OF_THE_GONE)) return;
    this.#watched.delete(watched);
    watched.onLeft();
  }

  #lookAgain(nowMs: number): void {
    if (this.#watched.size === 0) return;
    let pauseMs = USUAL_PAUSE_MS;
    for (const { seen, misses } of this.#watched) if (!seen || misses > 0) pauseMs = MIN_PAUSE_MS;
    this.#lookAt(nowMs + pauseMs);
  }
}
