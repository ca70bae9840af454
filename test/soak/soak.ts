/**
 * Mixed load through the sidecar for minutes, across renewals and rotations; see README.md beside this file.
 *
 *     npm run soak -- [--duration 10m] [--rotations 5] [--reloads 5] [--token-lifetime 8s]
 *                     [--rate 300] [--upstream tls|plain] [--keep-alive short|long]
 */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../../src/platform/errors.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { createConfiguration } from './configuration.ts';
import { createIdentity } from './identity.ts';
import { readOptions, type SoakOptions } from './options.ts';
import { startProtectedApi } from './protected-api.ts';
import { startProvider } from './provider.ts';
import { run } from './run.ts';
import { startSidecarProcess } from './sidecar-process.ts';
import { formatCriterion, formatTable, judge, type SoakFigures } from './verdict.ts';

const BUILD = join(import.meta.dirname, '../../scripts/build.ts');

/** Claims are whole seconds: a JWT may end up to a second before `expires_in` says so, a large part of a short life. */
const SHORT_LIFE_MS = 5000;

const stop = new AbortController();
process.once('SIGINT', () => stop.abort());
process.once('SIGTERM', () => stop.abort());

try {
  const options = readOptions(process.argv.slice(2));
  await promisify(execFile)(process.execPath, [BUILD]);
  const { durationMs, tokenLifetimeMs, rotations, reloads } = options;
  print(
    `load for ${durationMs / 1000} s, tokens of ${tokenLifetimeMs / 1000} s, rotations: ${rotations}, reloads: ${reloads}, ${options.upstream} upstream, ${options.keepAlive} keep-alive`,
  );
  process.exitCode = report(await soak(options)) ? 0 : 1;
} catch (error) {
  print(`soak: FAILED, could not be run: ${messageOf(error)}`);
  process.exitCode = 1;
}

async function soak(options: SoakOptions): Promise<SoakFigures> {
  /** In the order of starting; undone in reverse. */
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const provider = await startProvider(options.tokenLifetimeMs);
    closers.push(() => provider.close());
    const identity = options.upstream === 'tls' ? await createIdentity() : undefined;
    if (identity !== undefined) closers.push(() => identity.remove());
    const api = await startProtectedApi(provider, {
      leewaySeconds: options.tokenLifetimeMs < SHORT_LIFE_MS ? 1 : 0,
      keepAlive: options.keepAlive,
      identity,
    });
    closers.push(() => api.close());
    const configuration = await createConfiguration({
      authUrl: provider.authUrl,
      secretDirectory: provider.secretDirectory,
      upstream: `${identity === undefined ? 'http' : 'https'}://${formatAddress(api.address)}`,
    });
    closers.push(() => configuration.remove());
    const sidecar = await startSidecarProcess(
      {
        TOKEN_SIDECAR_CONFIG: configuration.path,
        ...(identity === undefined ? {} : { NODE_EXTRA_CA_CERTS: identity.caFile }),
      },
      // What every JWT begins with, and the secrets.
      (text) => text.includes('eyJ') || provider.secrets.some((secret) => text.includes(secret)),
    );
    closers.push(() => sidecar.terminate(0));
    const stats = await run(options, { provider, api, sidecar, configuration }, print, stop);
    for (const warning of sidecar.warnings) print(`sidecar: ${warning}`);
    return stats;
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/** @returns whether every criterion was met. */
function report(stats: SoakFigures): boolean {
  print(`\n${formatTable(stats.tally.rows())}\n`);
  for (const failure of stats.tally.failures) print(`failed: ${failure}`);
  const criteria = judge(stats);
  for (const criterion of criteria) print(formatCriterion(criterion));
  const unmet = criteria.filter(({ passed }) => !passed).map(({ name }) => name);
  const length = `${Math.round(stats.loadMs / 1000)} s${stats.endedEarly ? ', ended early' : ''}`;
  print(unmet.length === 0 ? `soak: passed (${length})` : `soak: FAILED (${length}): ${unmet.join(', ')}`);
  return unmet.length === 0;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
