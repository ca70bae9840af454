import { type KubernetesApi, statusOf } from '../../platform/kubernetes/api.ts';
import { FairQueue } from '../../platform/limits/fair-queue.ts';
import { ExpiringMap } from '../../platform/limits/lru-map.ts';
import type { Logger } from '../../platform/log/logger.ts';
import { SingleFlight } from '../../platform/time/async.ts';
import type { Clock } from '../../platform/time/clock.ts';

/** Well within the webhook's timeout of 5 s. */
const TIMEOUT_MS = 1000;

const KNOWN_FOR_MS = 30_000;
const MISSING_FOR_MS = 2000;
const MAX_KNOWN = 1000;

const LOOKUPS = { atOnce: 8, mostWaiting: Number.POSITIVE_INFINITY, timeoutMs: TIMEOUT_MS };

/** Its values never reach this process. */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

type SecretExistence = (namespace: string, name: string) => Promise<boolean | undefined>;

/** Never rejects; undefined means unknown. Answers within twice `TIMEOUT_MS`. */
export function createSecretExistence(
  api: KubernetesApi,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): SecretExistence {
  const known = new ExpiringMap<string, boolean>(clock, MAX_KNOWN);
  const asking = new SingleFlight<boolean | undefined>();
  const line = new FairQueue(clock, LOOKUPS);

  async function find(namespace: string, name: string): Promise<boolean | undefined> {
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${encodeURIComponent(name)}`;
    const found = known.get(path);
    if (found !== undefined) return found;
    const exists = await ask(path);
    if (exists === undefined) return undefined;
    known.set(path, exists, exists ? KNOWN_FOR_MS : MISSING_FOR_MS);
    return exists;
  }

  async function ask(path: string): Promise<boolean | undefined> {
    const place = line.enter();
    if ((await place.turn) !== 'come') {
      log.warn('whether a Secret exists was not asked: too many are asked about');
      return undefined;
    }
    try {
      await api.request('GET', path, { accept: METADATA_ONLY, timeoutMs: TIMEOUT_MS });
      return true;
    } catch (error) {
      if (statusOf(error) === 404) return false;
      log.warn({ err: error }, 'whether a Secret exists could not be asked');
      return undefined;
    } finally {
      place.end();
    }
  }

  return (namespace, name) => asking.run(`${namespace}/${name}`, () => find(namespace, name));
}
