import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import {
  type KubeletSecret,
  layOutSecret,
  type SecretValues,
} from '../../src/platform/mounted/secret-layout.ts';

/** A Secret volume that is gone after the test. */
export async function mountSecret(values: SecretValues): Promise<KubeletSecret> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-secret-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return await layOutSecret(directory, values);
}
