import { chmod, chown, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type KubeletSecret,
  layOutSecret,
  type SecretValues,
} from '../../src/platform/mounted/secret-layout.ts';

/** The group that the kubelet gives the volume to (`fsGroup`). */
const GROUP = 65_532;

/** A Secret volume: root's, readable by the pod's group alone. The set-group-id bit hands the group on to each version. */
export async function makeSecretVolume(values: SecretValues): Promise<KubeletSecret> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-secret-'));
  await chown(directory, 0, GROUP);
  await chmod(directory, 0o2750);
  return await layOutSecret(directory, values);
}
