import type { Socket } from 'node:net';
import { FairRing } from '../platform/limits/fair-queue.ts';
import type { Logger } from '../platform/log/logger.ts';
import {
  type ConnectionEnds,
  type ReadSocketTables,
  readSocketTables,
  SocketSearch,
  socketNames,
} from '../platform/net/socket-tables.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { HeldMemory, Holder, Party } from './held-memory.ts';

/**
 * For a peer that takes nothing. One that reads 10 KB/s makes room only every 40 s: Linux waits until a sixteenth of
 * its buffer is free.
 */
const STALL_MS = 60_000;

const LOOK_MS = 500;

/** While more than half of those that may wait do: most of them have nothing left to send. */
const SOON_MS = 50;

/** What such a peer still sends is read and dropped, this much: it may open windows as it reads. */
const MAX_READ_BYTES = 2 ** 20;
const MAX_READS = 4096;

/** Whose peer has taken nothing for so long makes room first: more than the slowest honest reader takes. */
const SLOW_MS = 45_000;

/** A page of the tables takes some 30 µs: looking takes at most a twentieth of a core. */
const PAUSE_PER_PAGE_MS = 0.6;

/** A socket that moves within the table may be missed once. */
const MISSES_OF_THE_GONE = 2;

/** Node's own side of a socket. */
interface Handle {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  /** Bytes that the kernel has not taken yet. */
  readonly writeQueueSize: number;
  onread: unknown;
  readStart(): void;
  readStop(): void;
  close(onClosed?: () => void): void;
  /** @returns an error where Node cannot. */
  reset(onClosed?: () => void): number;
}

interface EndedConnection extends Holder {
  readonly handle: Handle;
  readonly names: readonly string[];
  /** At the last look that found less, and when that was, on the monotonic clock. */
  unsentBytes: number;
  movedAtMs: number;
  misses: number;
  /** Its reset is due. */
  resets: boolean;
  /** It no longer counts for its party. */
  readonly uncount: () => void;
}

interface EndedConnectionsOptions {
  /** Called at each that ends. */
  readonly most: () => number;
  /** Whether the program ends, and what is left to send is the kernel's. */
  readonly leavesRest: () => boolean;
  readonly held: Pick<HeldMemory, 'add'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'debug'>;
  readonly readTables?: ReadSocketTables;
}

/**
 * What a closed socket still has to send counts for nobody, and the kernel keeps it for minutes if the peer does not
 * read. So an ending connection half-closes, and counts for its party until the peer has taken everything. It is reset
 * if the peer takes nothing for a minute, if its party holds too much memory, or if there are too many and its party
 * has most.
 */
export class EndedConnections {
  readonly #options: EndedConnectionsOptions;
  /** All without a caller are one party. */
  readonly #ended = new FairRing<EndedConnection>();
  /** The next look, on the monotonic clock. Undefined while one is under way, or none is due. */
  #next: { readonly atMs: number; readonly cancel: () => void } | undefined;
  #isLooking = false;
  /** Read at the last look. */
  #pages = 0;
  /** Resets that are due. */
  #resets = 0;
  #isClosed = false;

  constructor(options: EndedConnectionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#ended.size + this.#resets;
  }

  /**
   * If Node keeps its sockets otherwise, the connection ends as usual.
   * @param socket just accepted.
   * @param partyOf called when it ends.
   * @param hasEnded whether its end may be on its way. libuv refuses to reset such a socket, and Node can't even close it then.
   */
  follow(socket: Socket, partyOf: () => Party, hasEnded: () => boolean): void {
    const { _handle: handle } = socket as unknown as { _handle?: Handle | null };
    if (typeof handle?.close !== 'function' || typeof handle.reset !== 'function') return;
    const { close, reset } = handle;
    const isCutOff = (): boolean => handle.writeQueueSize > 0;
    const unfollow = (): void => void Object.assign(handle, { close, reset });
    handle.reset = (onClosed = () => {}) => {
      unfollow();
      if (!hasEnded()) return handle.reset(onClosed);
      if (this.#isClosed || isCutOff()) handle.close(onClosed);
      else this.#reset(this.#keep(handle, socket, partyOf(), onClosed));
      return 0;
    };
    handle.close = (onClosed = () => {}) => {
      unfollow();
      if (this.#isClosed || this.#options.leavesRest() || handle.bytesWritten === 0) handle.close(onClosed);
      else if (!isCutOff()) this.#makeRoomFor(this.#keep(handle, socket, partyOf(), onClosed));
      // What Node has not passed on is lost: the rest is of no use.
      else if (hasEnded()) handle.close(onClosed);
      else handle.reset(onClosed);
    };
  }

  /** Leaves the rest to the kernel. */
  close(): void {
    this.#isClosed = true;
    this.#next?.cancel();
    for (const ended of this.#ended) this.#let(ended);
  }

  /** @param onClosed tells Node that the socket is closed: not before the next turn. */
  #keep(handle: Handle, socket: Socket, party: Party, onClosed: () => void): EndedConnection {
    const { held, clock } = this.#options;
    const { localAddress, localPort, remoteAddress, remotePort } = socket;
    // TLS would go on with what comes in this turn.
    handle.readStop();
    const ends: ConnectionEnds = { localAddress, localPort, remoteAddress, remotePort };
    const line = party.caller === undefined ? undefined : party.key;
    const ended: EndedConnection = {
      party,
      heldBytes: 0,
      sockets: [ends],
      end: () => this.#reset(ended),
      handle,
      names: socketNames(ends, 'ours'),
      unsentBytes: Number.POSITIVE_INFINITY,
      movedAtMs: clock.monotonicMs(),
      misses: 0,
      resets: false,
      uncount: () => {
        this.#ended.remove(line, ended);
        notHeld();
      },
    };
    const notHeld = held.add(ended);
    this.#ended.add(line, ended);
    // Half-closes, unless that has been done.
    socket._final(() => {});
    setImmediate(() => {
      onClosed();
      // Closing would answer unread bytes with a reset.
      let reads = 0;
      const before = handle.bytesRead;
      handle.onread = () => {
        reads += 1;
        if (reads > MAX_READS || handle.bytesRead - before > MAX_READ_BYTES) this.#reset(ended);
      };
      handle.readStart();
    });
    return ended;
  }

  #makeRoomFor(newest: EndedConnection): void {
    while (this.#ended.size > this.#options.most()) {
      const victim = this.#victimAmong(this.#ended.most(), newest);
      if (victim === undefined) break;
      this.#tell(victim, 'too many wait for their peers');
      this.#reset(victim);
    }
    this.#lookLater();
  }

  /**
   * One that stalls; else one that no look has judged, which has probably sent everything and loses nothing; else the
   * oldest.
   */
  #victimAmong(all: Iterable<EndedConnection>, newest: EndedConnection): EndedConnection | undefined {
    const slowSinceMs = this.#options.clock.monotonicMs() - SLOW_MS;
    let unjudged: EndedConnection | undefined;
    let oldest: EndedConnection | undefined;
    for (const one of all) {
      if (one === newest) continue;
      const isJudged = Number.isFinite(one.unsentBytes);
      if (isJudged && one.movedAtMs <= slowSinceMs) return one;
      if (!isJudged) unjudged ??= one;
      oldest ??= one;
    }
    return unjudged ?? oldest;
  }

  #lookLater(): void {
    if (this.#isLooking) return;
    const { clock, most } = this.#options;
    const delayMs = Math.max(this.size > most() / 2 ? SOON_MS : LOOK_MS, PAUSE_PER_PAGE_MS * this.#pages);
    const atMs = clock.monotonicMs() + delayMs;
    if (this.#next !== undefined && this.#next.atMs <= atMs) return;
    this.#next?.cancel();
    this.#next = { atMs, cancel: clock.after(delayMs, () => void this.#look()) };
  }

  async #look(): Promise<void> {
    const { clock, readTables = readSocketTables } = this.#options;
    this.#next = undefined;
    this.#isLooking = true;
    this.#pages = 0;
    const asked = [...this.#ended];
    const search = new SocketSearch(asked.flatMap(({ names }) => names));
    const read = await readTables((page) => {
      this.#pages += 1;
      search.read(page);
    });
    const nowMs = clock.monotonicMs();
    const standing = new Set(this.#ended);
    for (const ended of asked) {
      if (!standing.has(ended)) continue;
      const unsentBytes = search.socket(ended.names)?.unsentBytes;
      // Nobody can tell what becomes of it.
      if (read === 'absent') this.#let(ended);
      else if (unsentBytes !== undefined) this.#judge(ended, unsentBytes, nowMs);
      else if (read === 'whole' && ++ended.misses >= MISSES_OF_THE_GONE) this.#let(ended);
    }
    this.#isLooking = false;
    if (this.#ended.size > 0) this.#lookLater();
  }

  #judge(ended: EndedConnection, unsentBytes: number, nowMs: number): void {
    ended.misses = 0;
    if (unsentBytes === 0) this.#let(ended);
    else if (unsentBytes < ended.unsentBytes) {
      ended.unsentBytes = unsentBytes;
      ended.movedAtMs = nowMs;
    } else if (nowMs - ended.movedAtMs >= STALL_MS) {
      this.#tell(ended, 'nothing of what was left to send was taken');
      this.#reset(ended);
    }
  }

  #tell({ party: { caller, address }, unsentBytes }: EndedConnection, why: string): void {
    const bytes = Number.isFinite(unsentBytes) ? unsentBytes : undefined;
    this.#options.log.debug({ caller, address, bytes }, `a connection that had ended was reset: ${why}`);
  }

  #let({ handle, uncount }: EndedConnection): void {
    uncount();
    handle.close();
  }

  /** In the next turn, when the kernel has its end. */
  #reset(ended: EndedConnection): void {
    if (ended.resets) return;
    ended.resets = true;
    ended.uncount();
    this.#resets += 1;
    setImmediate(() => {
      this.#resets -= 1;
      ended.handle.reset();
    });
  }
}
