import type { Socket } from 'node:net';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import { queuedInKernel } from './kernel-buffers.ts';

/** How often is looked, in ms: within that time a process on one core receives some 20 MB. */
const LOOK_MS = 100;

/**
 * All connections together may hold the memory limit divided by this; one of them ends if they hold more. V8 bounds its heap,
 * where heads are, to half of the limit, and needs room in it for what was let go.
 */
const PART_HELD = 6;

/** The process, and what the kernel holds for all connections together, may take so much of the memory limit, */
const PART_USED = 5 / 8;

/** and the kernel so much of it in any case. */
const PART_IN_KERNEL = 1 / 8;

/** Where the kernel holds too much, this part of what it may hold is left: so the next look need not follow at once. */
const PART_LEFT = 3 / 4;

/** The kernel takes at most so many times what it holds for a connection. */
const MAX_OVERHEAD = 2;

/** A look into the kernel may take tens of milliseconds: that many times as long follow without one. */
const REST = 5;

/** Nobody is looked at while the process takes less than the memory limit divided by this. */
const PART_QUIET = 3;

/** Who answers for what a connection holds. */
export interface Party {
  /** Unique to the party. */
  readonly key: string;
  /** Undefined before the caller is known. */
  readonly caller: string | undefined;
  readonly address: string;
}

/** A connection, and what it holds in memory because it is unfinished or unread. */
export interface Holder {
  readonly party: Party;
  readonly heldBytes: number;
  /** Whose buffers it answers for. */
  readonly sockets: readonly Socket[];
  /** At once, with all that the kernel holds for it. */
  end(): void;
}

interface HeldMemoryOptions {
  /** Infinite where nothing bounds the process. */
  readonly limitBytes: number;
  /** What the process takes now. */
  readonly residentBytes: () => number;
  /** What counts against the limit for the buffers of sockets now. */
  readonly socketBytes: () => number;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  /** Called for each connection that is ended. */
  readonly onEnded: () => void;
}

interface Held {
  readonly holder: Holder;
  readonly bytes: number;
}

/** What one party holds. */
interface Share {
  bytes: number;
  readonly isKnown: boolean;
  readonly held: Held[];
}

const UNKNOWN: Share = { bytes: 0, isKnown: false, held: [] };

/**
 * Bounds what all connections together hold that is unfinished or unread: heads, bodies, answers; and what the kernel holds
 * for them. Requests pay nothing for it: it is added up now and then, and only if there is much. While it is too much, the party that
 * holds most loses the connection that holds most. All without a caller count as one against each caller: addresses cost
 * nothing.
 */
export class HeldMemory {
  readonly #options: HeldMemoryOptions;
  readonly #holders = new Set<Holder>();
  #cancel: () => void = () => {};
  /** On the monotonic clock. */
  #restsUntilMs = 0;

  constructor(options: HeldMemoryOptions) {
    this.#options = options;
    if (Number.isFinite(options.limitBytes)) this.#lookLater();
  }

  /** @returns a function to report that it has ended. */
  add(holder: Holder): () => void {
    this.#holders.add(holder);
    return () => void this.#holders.delete(holder);
  }

  close(): void {
    this.#cancel();
  }

  #lookLater(): void {
    this.#cancel = this.#options.clock.after(LOOK_MS, () => {
      this.#look();
      this.#lookIntoKernel();
      this.#lookLater();
    });
  }

  #lookIntoKernel(): void {
    const { limitBytes, residentBytes, socketBytes, clock } = this.#options;
    const beganMs = clock.monotonicMs();
    if (beganMs < this.#restsUntilMs) return;
    const charged = socketBytes();
    const mostBytes = Math.max(PART_USED * limitBytes - residentBytes(), PART_IN_KERNEL * limitBytes);
    if (charged <= mostBytes) return;
    const queued = queuedInKernel(new Map(Array.from(this.#holders, (holder) => [holder, holder.sockets])));
    const shares = sharesOf(this.#holders, (holder) => queued.get(holder) ?? 0);
    const queuedBytes = sum(shares);
    // The rest is for connections that have ended: it does not shrink by ending others.
    const theirs = Math.min(charged, MAX_OVERHEAD * queuedBytes);
    if (theirs > mostBytes)
      this.#endUntil(
        shares,
        (queuedBytes * mostBytes * PART_LEFT) / theirs,
        'it has the kernel hold too much memory',
      );
    const endedMs = clock.monotonicMs();
    this.#restsUntilMs = endedMs + REST * (endedMs - beganMs);
  }

  #look(): void {
    const { limitBytes, residentBytes } = this.#options;
    if (residentBytes() < limitBytes / PART_QUIET) return;
    const shares = sharesOf(this.#holders, (holder) => holder.heldBytes);
    this.#endUntil(shares, limitBytes / PART_HELD, 'it holds too much memory');
  }

  #endUntil(shares: readonly Share[], mostBytes: number, why: string): void {
    const { log, onEnded } = this.#options;
    let total = sum(shares);
    while (total > mostBytes) {
      const share = whoPays(shares);
      const { holder, bytes } = share.held.pop() as Held;
      const { caller, address } = holder.party;
      log.warn({ caller, address, bytes, ofBytes: share.bytes }, `a connection was ended: ${why}`);
      share.bytes -= bytes;
      total -= bytes;
      onEnded();
      holder.end();
    }
  }
}

/** By party; the connection that holds most comes last. */
function sharesOf(holders: Iterable<Holder>, bytesOf: (holder: Holder) => number): readonly Share[] {
  const shares = new Map<string, Share>();
  for (const holder of holders) {
    const bytes = bytesOf(holder);
    if (bytes === 0) continue;
    const { key, caller } = holder.party;
    let share = shares.get(key);
    if (share === undefined) {
      share = { bytes: 0, isKnown: caller !== undefined, held: [] };
      shares.set(key, share);
    }
    share.bytes += bytes;
    share.held.push({ holder, bytes });
  }
  for (const { held } of shares.values()) held.sort((one, other) => one.bytes - other.bytes);
  return [...shares.values()];
}

function sum(shares: readonly Share[]): number {
  return shares.reduce((total, { bytes }) => total + bytes, 0);
}

/** The caller that holds most or, where all without a caller hold more than that together, the address that does. */
function whoPays(shares: readonly Share[]): Share {
  let caller = UNKNOWN;
  let address = UNKNOWN;
  let unknownBytes = 0;
  for (const share of shares) {
    if (share.isKnown) {
      if (share.bytes > caller.bytes) caller = share;
      continue;
    }
    unknownBytes += share.bytes;
    if (share.bytes > address.bytes) address = share;
  }
  return unknownBytes > caller.bytes ? address : caller;
}
