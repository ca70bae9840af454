import type { Logger } from '../platform/log/logger.ts';
import type { ConnectionEnds } from '../platform/net/socket-tables.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { KernelBuffers } from './kernel-buffers.ts';

/** In ms: meanwhile a process on one core receives some 20 MB. */
const LOOK_MS = 100;

/** V8 bounds its heap, where heads are, to half of the memory limit, and needs some of it for garbage. */
const PART_HELD = 1 / 6;

/** Below this part of the limit nobody is looked at. */
const PART_QUIET = 1 / 3;

/** The part of the limit for the process and the kernel's buffers. */
const PART_USED = 5 / 8;

/** The kernel's buffers may always take this part. */
const PART_IN_KERNEL = 1 / 8;

/** Of what the kernel may hold: ending down to this saves a look. */
const PART_LEFT = 3 / 4;

/** Charged over queued bytes: measured, 1.02 for large segments and 1.84 for those of one octet. */
const MAX_OVERHEAD = 2;

/** A look into the kernel may take tens of milliseconds: a pause this many times as long follows. */
const REST_TIMES = 5;

/** In ms, if the kernel could not be asked. */
const BROKEN_REST_MS = 1000;

/** Answers for what a connection holds. */
export interface Party {
  readonly key: string;
  /** Undefined before the caller is known. */
  readonly caller: string | undefined;
  readonly address: string;
}

export interface Holder {
  readonly party: Party;
  readonly heldBytes: number;
  /** Its own, and those to HTTP/1.1 upstreams whose request is under way; not a tunnel's upstream. */
  readonly sockets: readonly ConnectionEnds[];
  /** At once, with what the kernel holds for it. */
  end(): void;
}

interface HeldMemoryOptions {
  /** Infinite if nothing bounds the process. */
  readonly limitBytes: number;
  readonly residentBytes: () => number;
  readonly kernel: Pick<KernelBuffers, 'charged' | 'queued'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  readonly onEnded: () => void;
}

interface Held {
  readonly holder: Holder;
  readonly bytes: number;
}

interface Share {
  bytes: number;
  readonly isKnown: boolean;
  readonly held: Held[];
}

const UNKNOWN: Share = { bytes: 0, isKnown: false, held: [] };

/**
 * Bounds what all connections hold unfinished or unread, here and in the kernel. Requests pay nothing: totals are read
 * ten times a second, and shares only if there is much. Then the party that holds most loses its largest connection.
 */
export class HeldMemory {
  readonly #options: HeldMemoryOptions;
  readonly #holders = new Set<Holder>();
  #cancel: () => void = () => {};
  /** On the monotonic clock. */
  #restsUntilMs = 0;
  #kernelIsDue = false;

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
      // What was just ended is gone by the next look. The kernel's turn comes then, whatever is ended meanwhile.
      const hasEnded = this.#look();
      if (!hasEnded || this.#kernelIsDue) this.#lookIntoKernel();
      this.#kernelIsDue = hasEnded && !this.#kernelIsDue;
      this.#lookLater();
    });
  }

  #lookIntoKernel(): void {
    const { limitBytes, residentBytes, kernel, clock, log } = this.#options;
    const beganMs = clock.monotonicMs();
    if (beganMs < this.#restsUntilMs) return;
    const charged = kernel.charged();
    const mostBytes = Math.max(PART_USED * limitBytes - residentBytes(), PART_IN_KERNEL * limitBytes);
    if (charged <= mostBytes) return;
    const queued = kernel.queued(new Map(Array.from(this.#holders, (holder) => [holder, holder.sockets])));
    if (queued === undefined) {
      const bytes = charged;
      log.warn({ bytes }, 'the kernel holds too much memory for connections, and does not say for which');
      this.#restsUntilMs = beganMs + BROKEN_REST_MS;
      return;
    }
    const endedMs = clock.monotonicMs();
    this.#restsUntilMs = endedMs + REST_TIMES * (endedMs - beganMs);
    const shares = sharesOf(this.#holders, (holder) => queued.get(holder) ?? 0);
    const queuedBytes = sum(shares);
    // The rest belongs to nobody here: ending others does not shrink it.
    const theirs = Math.min(charged, MAX_OVERHEAD * queuedBytes);
    if (theirs > mostBytes) {
      const leftBytes = (queuedBytes * mostBytes * PART_LEFT) / theirs;
      this.#endUntil(shares, leftBytes, 'it has the kernel hold too much memory');
    }
  }

  /** @returns whether it has ended any. */
  #look(): boolean {
    const { limitBytes, residentBytes } = this.#options;
    if (residentBytes() < limitBytes * PART_QUIET) return false;
    const shares = sharesOf(this.#holders, (holder) => holder.heldBytes);
    return this.#endUntil(shares, limitBytes * PART_HELD, 'it holds too much memory');
  }

  /** @returns whether it has ended any. */
  #endUntil(shares: readonly Share[], mostBytes: number, why: string): boolean {
    const { log, onEnded } = this.#options;
    const before = sum(shares);
    let total = before;
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
    return total < before;
  }
}

/** The connection that holds most comes last. */
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

/** The caller that holds most or, if all without a caller hold more together, the address that does: addresses cost nothing. */
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
