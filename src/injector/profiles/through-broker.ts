/**
 * The sidecar's part of a credential that is via the broker: where to request tokens, and its pod's service account
 * token to authenticate with. The client's proof and the request's parameters stay with the broker.
 */

import type { Problem } from '../../platform/problems.ts';
import type { BrokerOfPods } from '../pod/broker.ts';
import { called } from './profile.ts';
import type { FileCredential, OwnedCredential } from './profile-entries.ts';
import type { ProfileMounts } from './profile-mounts.ts';

/** The kubelet replaces its tokens when a fifth of this is left. */
const EXPIRATION_SECONDS = 3600;

/** How soon all sidecars have tokens again after the broker's return. */
export const BROKER_RECOVERY_MS = 5000;

/** A credential as a pod has it. If there is no broker, that is added to `problems`. */
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

/** The settings that concern only the pod. */
function sidecarsOwn({ required, output, timeouts }: FileCredential): Partial<FileCredential> {
  return {
    ...(required === undefined ? {} : { required }),
    ...(output === undefined ? {} : { output }),
    ...(timeouts?.wait === undefined ? {} : { timeouts: { wait: timeouts.wait } }),
    renewal: { recovery: `${BROKER_RECOVERY_MS / 1000}s` },
  };
}
