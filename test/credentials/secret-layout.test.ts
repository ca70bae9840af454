import { chmod, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { layOutSecret } from '../../src/credentials/secret-layout.ts';

it('each version is read by whom the volume lets in, and its files by the group', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-layout-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await chmod(directory, 0o2750);
  const { update } = await layOutSecret(directory, { client_id: 'shop' });
  await update({ client_id: 'shop' });

  const version = await stat(join(directory, '..data'));
  const file = await stat(join(directory, 'client_id'));
  // The set-group-id bit hands the volume's group on to what comes later.
  expect(version.mode & 0o2050).toBe(0o2050);
  expect(file.mode & 0o777).toBe(0o440);
  expect([version.gid, file.gid]).toEqual([file.gid, (await stat(directory)).gid]);
});
