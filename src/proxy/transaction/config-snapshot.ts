import type { ProxyLimits } from '../../config/config.ts';
import type { LogUnread, RecordRequest } from '../observer.ts';
import type { Destinations } from '../routing/destinations.ts';
import type { Admission } from './admission.ts';
import type { CallerPolicy } from './authorizer.ts';

type SnapshotParts = Pick<ConfigSnapshot, 'destinations' | 'admission' | 'limits' | 'record' | 'callers'> & {
  readonly logUnread?: LogUnread | undefined;
};

/** One configuration in use. A new one takes over at once; admitted requests finish under the old one. */
export class ConfigSnapshot {
  readonly destinations: Destinations;
  readonly admission: Admission;
  readonly limits: ProxyLimits;
  readonly record: RecordRequest;
  readonly logUnread: LogUnread | undefined;
  /** Used only with an authorizer. */
  readonly callers: CallerPolicy;
  #underWay = 0;
  readonly #unusedWaiters: (() => void)[] = [];

  constructor({ destinations, admission, limits, record, logUnread, callers }: SnapshotParts) {
    this.destinations = destinations;
    this.admission = admission;
    this.limits = limits;
    this.record = record;
    this.logUnread = logUnread;
    this.callers = callers;
  }

  admitted(): void {
    this.#underWay += 1;
  }

  ended(): void {
    this.#underWay -= 1;
    if (this.#underWay > 0) return;
    for (const done of this.#unusedWaiters.splice(0)) done();
  }

  whenUnused(): Promise<void> {
    if (this.#underWay === 0) return Promise.resolve();
    return new Promise((resolve) => this.#unusedWaiters.push(resolve));
  }
}
