/** Prints what the file of a token holds while its volume has no room for a second: as given, before the end, and after. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLogger } from '../../../src/platform/log/logger.ts';
import { openTokenFile } from '../../../src/token/output/token-file.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { heldTokens } from './held-tokens.ts';

const path = join(process.argv[2] as string, 'kafka');
const clock = new ManualClock();
const { source, give } = heldTokens(clock);
await openTokenFile({
  config: { path, mode: 0o600 },
  source,
  clock,
  metrics: { written: () => undefined },
  log: createLogger('silent'),
});
const seen: string[] = [];
for (const [token, afterMs] of [
  ['one', 30_000],
  ['two', 29_999],
  [undefined, 1],
] as const) {
  if (token !== undefined) give(token, 60_000);
  await clock.advance(afterMs);
  seen.push(readFileSync(path, 'utf8'));
}
process.stdout.write(seen.join(', '));
