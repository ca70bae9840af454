import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseAccepted, staleEntries } from '../../mutation/accepted.ts';

it('the accepted mutants are written well, and the code they name stands', () => {
  const accepted = parseAccepted(
    readFileSync(new URL('../../mutation/accepted.yaml', import.meta.url), 'utf8'),
  );
  expect(accepted.length).toBeGreaterThan(0);
  expect(staleEntries(accepted, [])).toEqual([]);
});
