import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';

/** More steps of the file system, one after the other, than reading a file takes: whatever was being read has been. */
export async function readingsOver(): Promise<void> {
  for (let step = 0; step < 15; step++) await stat(tmpdir());
}
