/**
 * Caches what profiles resolved to, so that a rollout, or a client that asks again and again, costs one resolution. The
 * key is all that went into it: the profiles, which are new objects once judged anew, and everything that the pod said.
 * No entry is ever out of date, and the least recently used ones make room.
 */

import { LruMap } from '../../platform/limits/lru-map.ts';
import type { ProfileRequest, ProfileResolution } from '../pod/context.ts';
import type { ValidProfile } from './profile.ts';

/** Characters of all entries, keys included. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
const MAX_RESOLUTIONS = 500;

interface KnownResolutions {
  /** The resolution of these profiles, computed now if it is not known. */
  of(
    profiles: readonly ValidProfile[],
    overrides: ProfileRequest['overrides'],
    defaults: ProfileRequest['defaults'],
    resolve: () => ProfileResolution,
  ): ProfileResolution;
}

export function rememberResolutions(): KnownResolutions {
  const known = new LruMap<string, ProfileResolution>({
    max: MAX_RESOLUTIONS,
    maxWeight: MAX_CHARACTERS,
    weigh: (resolution, key) => key.length + JSON.stringify(resolution).length,
  });
  const numbers = new WeakMap<object, number>();
  let lastNumber = 0;

  function numberOf(object: object): number {
    const found = numbers.get(object);
    if (found !== undefined) return found;
    numbers.set(object, ++lastNumber);
    return lastNumber;
  }

  return {
    of(profiles, overrides, defaults, resolve) {
      const key = JSON.stringify([...profiles.map(numberOf), numberOf(defaults), overrides]);
      const found = known.get(key);
      if (found !== undefined) return found;
      const resolution = resolve();
      known.set(key, resolution);
      return resolution;
    },
  };
}
