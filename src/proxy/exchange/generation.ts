import type { ProxyLimits } from '../../config/config.ts';
import type { Follow, LogUnread } from '../observer.ts';
import type { DestinationFinder } from '../routing/destinations.ts';
import type { Admission } from './admission-rules.ts';
import type { CallerPolicy } from './gatekeeper.ts';

export type GenerationParts = Pick<
  Generation,
  'destinations' | 'admission' | 'limits' | 'follow' | 'callers'
> & { readonly logUnread?: LogUnread | undefined };

/**
 * What requests are served by: one configuration, whole. Another takes its place at once; a request that it has admitted
 * ends by it.
 */
export class Generation {
  readonly destinations: DestinationFinder;
  readonly admission: Admission;
  readonly limits: ProxyLimits;
  readonly follow: Follow;
  /** Absent where nothing is logged of what could not be read as a request. */
  readonly logUnread: LogUnread | undefined;
  /** Heeded where there is a gatekeeper. */
  readonly callers: CallerPolicy;
  #underWay = 0;
  readonly #unusedWaiters: (() => void)[] = [];

  constructor({ destinations, admission, limits, follow, logUnread, callers }: GenerationParts) {
    this.destinations = destinations;
    this.admission = admission;
    this.limits = limits;
    this.follow = follow;
    this.logUnread = logUnread;
    this.callers = callers;
  }

  /** A request was admitted. */
  admitted(): void {
    this.#underWay += 1;
  }

  /** One of those has ended. */
  ended(): void {
    this.#underWay -= 1;
    if (this.#underWay > 0) return;
    for (const done of this.#unusedWaiters.splice(0)) done();
  }

  /** Resolves as soon as no request that it admitted is under way. */
  whenUnused(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => this.#unusedWaiters.push(resolve));
  }
}
