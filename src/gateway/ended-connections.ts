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

/** A page of the tables takes some 30 µs: looking takes at most a twentieth of a core. */
const PAUSE_PER_PAGE_MS = 0.6;

/** A socket that moves within the table may be missed once. */
const MISSES_OF_THE_GONE = 2;

/** Node's own side of a socket. */
interface Handle {
  readonly bytesWritten: number;
  /** Bytes that the kernel has not taken yet. */
  readonly writeQueueSize: number;
  onread: unknown;
  readStart(): void;
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
  readonly uncount: () => void;
}

interface EndedConnectionsOptions {
  /** Called at each that ends. */
  readonly most: () => number;
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
  /** Undefined while a look is under way, or none is due. */
  #cancel: (() => void) | undefined;
  #isLooking = false;
  #isClosed = false;

  constructor(options: EndedConnectionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#ended.size;
  }

  /**
   * If Node keeps its sockets otherwise, the connection ends as usual.
   * @param socket just accepted.
   * @param partyOf called when it ends.
   */
  follow(socket: Socket, partyOf: () => Party): void {
    const { _handle: handle } = socket as unknown as { _handle?: Handle | null };
    if (typeof handle?.close !== 'function' || typeof handle.reset !== 'function') return;
    const { close, reset } = handle;
    handle.reset = (onClosed) => {
      // Node resets no socket whose end waits behind what the kernel does not take.
      if (reset.call(handle, onClosed) !== 0) close.call(handle, onClosed);
      return 0;
    };
    handle.close = (onClosed = () => {}) => {
      handle.close = close;
      if (this.#isClosed || handle.bytesWritten === 0) handle.close(onClosed);
      // It is cut off, so that the rest is of no use.
      else if (handle.writeQueueSize > 0) handle.reset(onClosed);
      else this.#keep(handle, socket, partyOf(), onClosed);
    };
  }

  /** Leaves the rest to the kernel. */
  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    for (const ended of this.#ended) this.#let(ended);
  }

  /** @param onClosed tells Node that the socket is closed: not before the next turn. */
  #keep(handle: Handle, socket: Socket, party: Party, onClosed: () => void): void {
    const { held, clock, most } = this.#options;
    const { localAddress, localPort, remoteAddress, remotePort } = socket;
    const ends: ConnectionEnds = { localAddress, localPort, remoteAddress, remotePort };
    const line = party.caller === undefined ? undefined : party.key;
    const ended: EndedConnection = {
      party,
      heldBytes: 0,
      sockets: [ends as Socket],
      end: () => this.#reset(ended),
      handle,
      names: socketNames(ends, 'ours'),
      unsentBytes: Number.POSITIVE_INFINITY,
      movedAtMs: clock.monotonicMs(),
      misses: 0,
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
      // Read and dropped: closing would answer unread bytes with a reset.
      handle.onread = () => {};
      handle.readStart();
    });
    while (this.size > most()) {
      const [oldest] = this.#ended.most();
      this.#reset(oldest as EndedConnection);
    }
    if (this.#cancel === undefined && !this.#isLooking) this.#lookAfter(LOOK_MS);
  }

  #lookAfter(delayMs: number): void {
    this.#cancel = this.#options.clock.after(delayMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { clock, readTables = readSocketTables } = this.#options;
    this.#cancel = undefined;
    this.#isLooking = true;
    let pages = 0;
    const asked = [...this.#ended];
    const search = new SocketSearch(asked.flatMap(({ names }) => names));
    const read = await readTables((page) => {
      pages += 1;
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
    if (this.size > 0) this.#lookAfter(Math.max(LOOK_MS, PAUSE_PER_PAGE_MS * pages));
  }

  #judge(ended: EndedConnection, unsentBytes: number, nowMs: number): void {
    ended.misses = 0;
    if (unsentBytes === 0) this.#let(ended);
    else if (unsentBytes < ended.unsentBytes) {
      ended.unsentBytes = unsentBytes;
      ended.movedAtMs = nowMs;
    } else if (nowMs - ended.movedAtMs >= STALL_MS) {
      const { caller, address } = ended.party;
      const what = 'a connection that had ended was reset: nothing of what was left to send was taken';
      this.#options.log.debug({ caller, address, bytes: unsentBytes }, what);
      this.#reset(ended);
    }
  }

  #let({ handle, uncount }: EndedConnection): void {
    uncount();
    handle.close();
  }

  #reset({ handle, uncount }: EndedConnection): void {
    uncount();
    handle.reset();
  }
}
