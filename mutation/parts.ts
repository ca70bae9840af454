import { inSeededOrder } from './even-part.ts';
import { roomOf } from './rooms.ts';

/**
 * A mutant lists every test that reaches it, and the tool sends the lists of all in one message: those of a large room
 * are longer than a string can be.
 */
export const MAX_FILES = 20;

/** What one run of the tool after the other changes. */
export interface Parts {
  readonly parts: readonly (readonly string[])[];
  /** False when files were left out. */
  readonly all: boolean;
}

/**
 * Files that fit in one run are together, more of them come room by room. Where a part of the mutants is enough, so are as
 * many files of each room as one run takes, drawn by the seed.
 */
export function partsOf(
  files: readonly string[],
  { seed, evenPart }: { readonly seed: string; readonly evenPart: boolean },
): Parts {
  if (files.length <= MAX_FILES) return { parts: files.length === 0 ? [] : [files], all: true };
  const rooms = Object.values(Object.groupBy(files, (file) => roomOf(file) ?? 'elsewhere'));
  const parts = rooms.flatMap((room = []) => {
    const inParts = cut(
      inSeededOrder(
        room.map((id) => ({ id })),
        seed,
      ).map(({ id }) => id),
    );
    return evenPart ? inParts.slice(0, 1) : inParts;
  });
  return { parts, all: parts.flat().length === files.length };
}

function cut(files: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(files.length / MAX_FILES) }, (_, n) =>
    files.slice(n * MAX_FILES, (n + 1) * MAX_FILES),
  );
}
