import type { TestProject } from 'vitest/node';
import { startCluster, stopCluster, whyUnavailable } from './node/cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Why there is no cluster; undefined when there is one. */
    clusterUnavailable: string | undefined;
  }
}

/** One cluster for all files. Where there can't be one, tests are skipped, except in CI, where it is an error. */
export default async function setUp({ provide }: TestProject): Promise<(() => Promise<void>) | undefined> {
  const reason = whyUnavailable();
  provide('clusterUnavailable', reason);
  if (reason !== undefined) {
    if (process.env['CI'] === 'true') throw new Error(`nothing can be tried in a cluster: ${reason}`);
    process.stderr.write(`The scenarios of the cluster are skipped: ${reason}\n`);
    return undefined;
  }
  await startCluster();
  // A cluster that stays can be looked at: `KEEP=1 npm run test:cluster`, and the next run takes it down.
  return process.env['KEEP'] === undefined ? stopCluster : undefined;
}
