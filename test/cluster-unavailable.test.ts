/** Where there can be no cluster, that is said: nobody takes scenarios for played that were not. */

import { afterEach, expect, it, vi } from 'vitest';
import type { TestProject } from 'vitest/node';
import setUp from './cluster/global-setup.ts';

const REASON = 'network namespaces and containers need root here';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** As somebody who is not root, on Linux. */
async function asUser(ci: string): Promise<{ provided: unknown[]; said: string }> {
  vi.spyOn(process, 'getuid').mockReturnValue(1000);
  vi.spyOn(process, 'platform', 'get').mockReturnValue('linux');
  vi.stubEnv('CI', ci);
  const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const provide = vi.fn();
  expect(await setUp({ provide } as unknown as TestProject)).toBeUndefined();
  return { provided: provide.mock.calls, said: String(said.mock.calls[0]?.[0]) };
}

it('scenarios are skipped on a machine that cannot have one, and the reason is given', async () => {
  expect(await asUser('')).toEqual({
    provided: [['clusterUnavailable', REASON]],
    said: `The scenarios of the cluster are skipped: ${REASON}\n`,
  });
});

it('it is an error in CI', async () => {
  await expect(asUser('true')).rejects.toThrow(`nothing can be tried in a cluster: ${REASON}`);
});
