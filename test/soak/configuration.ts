import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type KubeletSecret, layOutSecret } from '../../src/platform/mounted/secret-layout.ts';

const FILE = 'token-sidecar.yaml';

/** The configuration file of the sidecar, in a directory that is swapped as a ConfigMap is. */
export interface SoakConfiguration {
  readonly path: string;
  /**
   * Swaps number `n` in. Each differs from the one before: in limits, and every other time in what decides whether
   * connections to the upstream are kept.
   */
  changeTo(n: number): Promise<void>;
  remove(): Promise<void>;
}

export async function createConfiguration(parts: {
  readonly authUrl: string;
  readonly secretDirectory: string;
  readonly upstream: string;
}): Promise<SoakConfiguration> {
  const { authUrl, secretDirectory, upstream } = parts;
  const textOf = (n: number): string =>
    JSON.stringify({
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0' },
      limits: { headerCount: 200 + n },
      credentials: [{ name: 'default', authUrl, dir: secretDirectory }],
      routes: [
        { name: 'default', upstream, timeouts: { connect: `${5000 + (Math.floor(n / 2) % 2)}ms` } },
        ...(n % 3 === 1 ? [{ name: 'another', match: { host: 'another.test' }, upstream }] : []),
      ].toReversed(),
    });
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-soak-'));
  const volume: KubeletSecret = await layOutSecret(directory, { [FILE]: textOf(0) });
  return {
    path: join(directory, FILE),
    changeTo: (n) => volume.update({ [FILE]: textOf(n) }),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}
