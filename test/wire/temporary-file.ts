import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Writes a file for the length of the test and returns its path. */
export async function temporaryFile(name: string, content: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-wire-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, name);
  await writeFile(path, content, { mode: 0o600 });
  return path;
}
