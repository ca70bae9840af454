import type { Product } from './data-path.ts';
import { randomWalk } from './random-walk.ts';
import { runWalk } from './run-walk.ts';
import { shrunk } from './shrink.ts';
import type { Walk } from './walk.ts';
import type { Worlds } from './worlds.ts';

export interface Finding {
  readonly seed: number;
  readonly error: Error;
  /** As short as it could be made. */
  readonly walk: Walk;
}

export interface ExploreOptions {
  readonly worlds: Worlds;
  readonly product: Product;
  /** Of the first walk; the next ones follow. */
  readonly seed: number;
  readonly durationMs: number;
  readonly mostWalks?: number;
  /** Whether the walk that finds something is made shorter; it is, unless told otherwise. */
  readonly shortens?: boolean;
}

export interface Explored {
  readonly walks: number;
  readonly steps: number;
  readonly finding: Finding | undefined;
  /** Without the time that shortening took. */
  readonly foundAfterMs: number | undefined;
}

/** Takes walk after walk until one finds something, or the time is over. */
export async function explore(options: ExploreOptions): Promise<Explored> {
  const {
    worlds,
    product,
    seed,
    durationMs,
    mostWalks = Number.POSITIVE_INFINITY,
    shortens = true,
  } = options;
  const startedAt = performance.now();
  const endsAt = startedAt + durationMs;
  let steps = 0;
  let walks = 0;
  while (walks < mostWalks && performance.now() < endsAt) {
    const walk = randomWalk(seed + walks);
    const error = await attempt(walk);
    walks += 1;
    steps += walk.steps.length;
    if (error === undefined) continue;
    const foundAfterMs = performance.now() - startedAt;
    const short = shortens ? await shrunk(walk, error, attempt) : { walk, error };
    return { walks, steps, finding: { seed: seed + walks - 1, ...short }, foundAfterMs };
  }
  return { walks, steps, finding: undefined, foundAfterMs: undefined };

  async function attempt(walk: Walk): Promise<Error | undefined> {
    return await runWalk(walk, await worlds.open(walk), product);
  }
}
