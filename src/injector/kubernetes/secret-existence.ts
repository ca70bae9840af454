import type { Clock } from '../../clock.ts';
import type { Logger } from '../../log/logger.ts';
import { type KubernetesApi, statusOf } from './api.ts';

/** Within the webhook's timeout of 5 s, and well before it: the answer is worth a warning, not a delayed pod. */
const TIMEOUT_MS = 1000;

/** A rollout asks for the same Secret many times. */
const KNOWN_FOR_MS = 30_000;
const MISSING_FOR_MS = 2000;
const MOST_KNOWN = 1000;

/** The Secret's metadata alone: its values never reach this process. */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';

export type SecretExistence = (namespace: string, name: string) => Promise<boolean | undefined>;

/** Asks whether Secrets exist, and remembers it for a moment. Never rejects; undefined means that nobody knows. */
export function createSecretExistence(
  api: KubernetesApi,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): SecretExistence {
  const known = new Map<string, { readonly exists: boolean; readonly untilMs: number }>();

  return async (namespace, name) => {
    const key = `${namespace}/${name}`;
    const found = known.get(key);
    if (found !== undefined && clock.now().monotonicMs < found.untilMs) return found.exists;
    const exists = await ask(namespace, name);
    if (exists === undefined) return undefined;
    known.delete(key);
    if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value as string);
    const untilMs = clock.now().monotonicMs + (exists ? KNOWN_FOR_MS : MISSING_FOR_MS);
    known.set(key, { exists, untilMs });
    return exists;
  };

  async function ask(namespace: string, name: string): Promise<boolean | undefined> {
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${encodeURIComponent(name)}`;
    try {
      await api.request('GET', path, { accept: METADATA_ONLY, timeoutMs: TIMEOUT_MS });
      return true;
    } catch (error) {
      if (statusOf(error) === 404) return false;
      log.warn({ err: error }, 'whether a Secret exists could not be asked');
      return undefined;
    }
  }
}
