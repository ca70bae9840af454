import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Pod } from './report.ts';

/** Kubernetes puts it beside the account's token. */
const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** By the downward API, else from what every container has. Names that Kubernetes does not allow are left out. */
export function readPod(
  env: Readonly<Record<string, string | undefined>>,
  namespaceFile = NAMESPACE_FILE,
): Pod {
  const namespace = named(env['POD_NAMESPACE']) ?? named(readText(namespaceFile));
  const node = named(env['NODE_NAME']);
  return {
    name: named(env['POD_NAME']) ?? hostname(),
    ...(namespace === undefined ? {} : { namespace }),
    ...(node === undefined ? {} : { node }),
  };
}

/** RFC 1123 §2.1 */
function named(text: string | undefined): string | undefined {
  return text !== undefined && /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(text) ? text : undefined;
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}
