import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { RealWorld } from './real/world.ts';
import { SimulatedWorld } from './simulated/network.ts';
import type { Walk } from './walk.ts';
import type { World } from './world.ts';

export const DRIVERS = ['simulated', 'real'] as const;

export type Driver = (typeof DRIVERS)[number];

/** Makes the worlds of many walks. */
export interface Worlds {
  open(walk: Pick<Walk, 'transport' | 'upstream'>): Promise<World>;
  close(): Promise<void>;
}

export async function createWorlds(driver: Driver): Promise<Worlds> {
  const authority = createCertificateAuthority('token-sidecar model');
  const server = authority.issue('upstream', '127.0.0.1');
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-model-'));
  const caFile = join(directory, 'ca.crt');
  await writeFile(caFile, authority.cert);
  return {
    async open({ transport, upstream }) {
      if (driver === 'simulated') return new SimulatedWorld(caFile, upstream);
      const identity = { caFile, protocol: upstream, ...server };
      return await RealWorld.start(transport === 'tls' ? identity : undefined);
    },
    close: () => rm(directory, { recursive: true }),
  };
}
