/**
 * Caches what profiles resolved to, so that a rollout, or a client that asks again and again, costs one resolution. The
 * key is all that went into it: the profiles, which are new objects once judged anew, and everything that the pod said.
 * No entry is ever out of date, and the least recently used ones make room.
 */

import type { ProfileRequest, ProfileResolution } from '../pod/profiles.ts';
import type { ValidProfile } from './profile.ts';

/** Characters of all entries, keys included. */
export const MOST_CHARACTERS = 4 * 1024 * 1024;
export const MOST_RESOLUTIONS = 500;
/** A larger entry is not kept. */
const LARGEST = MOST_CHARACTERS / 8;

interface Known {
  readonly resolution: ProfileResolution;
  readonly characters: number;
}

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
  /** The most recently used is at the end. */
  const known = new Map<string, Known>();
  const numbers = new WeakMap<object, number>();
  let lastNumber = 0;
  let characters = 0;

  function numberOf(object: object): number {
    const found = numbers.get(object);
    if (found !== undefined) return found;
    numbers.set(object, ++lastNumber);
    return lastNumber;
  }

  function drop(key: string, { characters: own }: Known): void {
    known.delete(key);
    characters -= own;
  }

  return {
    of(profiles, overrides, defaults, resolve) {
      const key = JSON.stringify([...profiles.map(numberOf), numberOf(defaults), overrides]);
      const found = known.get(key);
      if (found !== undefined) {
        known.delete(key);
        known.set(key, found);
        return found.resolution;
      }
      const resolution = resolve();
      const own = key.length + JSON.stringify(resolution).length;
      if (own > LARGEST) return resolution;
      known.set(key, { resolution, characters: own });
      characters += own;
      for (const [oldest, one] of known) {
        if (known.size <= MOST_RESOLUTIONS && characters <= MOST_CHARACTERS) break;
        drop(oldest, one);
      }
      return resolution;
    },
  };
}
