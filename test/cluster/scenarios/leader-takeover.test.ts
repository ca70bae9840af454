/** A replica that writes the certificate is killed: another one takes over, which it may once the Lease has run out. */

import { afterAll, expect, it } from 'vitest';
import { get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { killReplica, replicasOf } from '../support/faults.ts';
import { installChart, NAMESPACE, RELEASE } from '../support/release.ts';
import { hasPolicies, inCluster, useShop } from '../support/scenario.ts';
import { makePodsDuring } from '../support/unscheduled-pods.ts';
import type { Pod } from '../support/workload.ts';

const SHOP = 'takeover';
const SECRET = `${RELEASE}-injector-self-managed`;

async function certificate(): Promise<string> {
  const { data } = await get<{ data: Readonly<Record<string, string>> }>('secret', SECRET, '-n', NAMESPACE);
  return data['tls.crt'] ?? '';
}

/** The replica that writes the Secret. */
async function leader(): Promise<Pod | undefined> {
  const lease = await get<{ spec?: { holderIdentity?: string } }>('lease', SECRET, '-n', NAMESPACE);
  const holder = lease.spec?.holderIdentity ?? '';
  return (await replicasOf('injector')).find(({ metadata }) => holder.startsWith(`${metadata.name}_`));
}

inCluster('the leader of self-managed certificates', () => {
  useShop(SHOP);
  afterAll(() => installChart());

  it.runIf(hasPolicies)(
    'killed as a rotation is asked for: another one rotates, and no pod lacks its sidecar',
    async () => {
      // Enforced: a pod that the leader was asked for may be refused, and is made when it is asked for again.
      await installChart({
        'injector.webhook.enforce': true,
        'injector.certificates.source': 'self-managed',
        'injector.certificates.selfManaged.propagation': '10s',
      });
      const before = await certificate();
      const { bare } = await makePodsDuring(SHOP, 'taken-over', async () => {
        await killReplica(await eventually('a replica is the leader', 120, leader));
        await kubectl('-n', NAMESPACE, 'annotate', 'secret', SECRET, 'token-sidecar.dev/rotate=now');
        await eventually('another certificate', 240, async () => (await certificate()) !== before);
      });
      expect(bare).toEqual([]);
    },
    500_000,
  );
});
