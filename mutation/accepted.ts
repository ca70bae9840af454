import { readFileSync, statSync } from 'node:fs';
import { parse } from 'yaml';
import { type Mutant, oneLine } from './mutant.ts';

/** A mutant that no test can or should notice. It is known by its text, not by its place, so that code may move. */
export interface Accepted {
  readonly file: string;
  readonly mutator: string;
  readonly original: string;
  readonly replacement: string;
  readonly reason: string;
}

const KEYS = ['file', 'mutator', 'original', 'replacement', 'reason'] as const;

/** @throws {Error} when an entry lacks something or says more. */
export function parseAccepted(text: string): readonly Accepted[] {
  const entries = (parse(text) ?? []) as readonly Record<string, unknown>[];
  for (const entry of entries) {
    const wrong =
      KEYS.find((key) => typeof entry[key] !== 'string') ??
      Object.keys(entry).find((key) => !(KEYS as readonly string[]).includes(key));
    if (wrong !== undefined || entry['reason'] === '') {
      throw new Error(
        `an accepted mutant has ${KEYS.join(', ')}, all of them text: ${JSON.stringify(entry)}`,
      );
    }
  }
  return (entries as unknown as Accepted[]).map((entry) => ({
    ...entry,
    original: oneLine(entry.original),
    replacement: oneLine(entry.replacement),
  }));
}

export function isOf(accepted: Accepted, mutant: Mutant): boolean {
  return (
    accepted.file === mutant.file &&
    accepted.mutator === mutant.mutator &&
    accepted.original === mutant.original &&
    accepted.replacement === mutant.replacement
  );
}

/**
 * Entries that the code has outgrown: their text is gone from their file, or every mutant they name was measured and
 * noticed.
 */
export function staleEntries(accepted: readonly Accepted[], mutants: readonly Mutant[]): readonly Accepted[] {
  return accepted.filter((entry) => {
    if (!textStands(entry)) return true;
    const named = mutants.filter((mutant) => isOf(entry, mutant));
    return named.length > 0 && named.every(({ fate }) => fate === 'noticed' || fate === 'timedOut');
  });
}

function textStands({ file, original }: Accepted): boolean {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return false;
  return oneLine(readFileSync(file, 'utf8')).includes(original);
}
