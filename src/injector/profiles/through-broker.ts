/**
 * What the sidecar has of a credential that is via the broker: where to ask, and its pod's service account token to ask with.
 * What proves the client to the provider, and what is asked for there, stays with the broker.
 */

import type { Problem } from '../../config/problems.ts';
import type { BrokerOfPods } from '../pod/broker.ts';
import { called } from './profile.ts';
import type { FileCredential, OwnedCredential } from './profile-entries.ts';
import type { ProfileMounts } from './profile-mounts.ts';

/** Its tokens are replaced by the kubelet when a fifth of this is left. */
const EXPIRATION_SECONDS = 3600;

/** All sidecars have tokens again so soon after a broker that was away has returned. */
export const BROKER_RECOVERY_MS = 5000;

/** A credential as it is for a pod. Where there is no broker, that joins `problems`. */
export function throughBroker(
  owned: OwnedCredential,
  broker: BrokerOfPods | undefined,
  mounts: ProfileMounts,
  problems: Problem[],
): OwnedCredential {
  if (owned.via !== 'broker') return owned;
  const { profile, key, entry } = owned;
  if (broker === undefined) {
    const expected = 'sidecar, as no broker is configured here (--broker-url)';
    problems.push({ key: `${called(profile.identity)}: ${key}.via`, value: 'broker', expected });
    return owned;
  }
  const caFile = authoritiesPath(broker, mounts);
  return {
    profile,
    key,
    via: 'broker',
    brokerPath: owned.brokerPath,
    secret: undefined,
    serviceAccountToken: { audience: broker.audience, expirationSeconds: EXPIRATION_SECONDS },
    entry: {
      name: entry.name,
      dir: entry.dir,
      tokenUrl: `${broker.url}/token/${owned.brokerPath}`,
      clientAuth: 'kubernetes_jwt',
      ...(caFile === undefined ? {} : { tls: { caFile } }),
      ...sidecarsOwn(entry),
    },
  };
}

function authoritiesPath({ authorities }: BrokerOfPods, mounts: ProfileMounts): string | undefined {
  switch (authorities.from) {
    case 'public':
      return undefined;
    case 'config_map':
      return mounts.authorities({ configMap: { name: authorities.name } });
    case 'file':
      return mounts.brokerAuthorities();
  }
}

/** What is about the pod alone. */
function sidecarsOwn({ required, output, timeouts }: FileCredential): Partial<FileCredential> {
  return {
    ...(required === undefined ? {} : { required }),
    ...(output === undefined ? {} : { output }),
    ...(timeouts?.wait === undefined ? {} : { timeouts: { wait: timeouts.wait } }),
    renewal: { recovery: `${BROKER_RECOVERY_MS / 1000}s` },
  };
}
