import { join } from 'node:path';
import { IN_NAMESPACE } from './daemon.ts';
import { KUBECONFIG } from './places.ts';
import { run } from './run.ts';
import { HELM_BIN, KUBERNETES_BIN } from './versions.ts';

const [ENTER, ...ENTERED] = IN_NAMESPACE;
const env = { KUBECONFIG };

/** Runs kubectl as the cluster's administrator. @throws with what it printed to standard error. */
export function kubectl(...args: readonly string[]): Promise<string> {
  return run(ENTER, [...ENTERED, join(KUBERNETES_BIN, 'kubectl'), ...args], { env });
}

/** Applies manifests, given as objects. */
export function apply(...objects: readonly object[]): Promise<string> {
  const input = objects.map((object) => JSON.stringify(object)).join('\n---\n');
  return run(ENTER, [...ENTERED, join(KUBERNETES_BIN, 'kubectl'), 'apply', '-f', '-'], { env, input });
}

/** An object, or a list of them, as the API has it. */
export async function get<Kind>(...args: readonly string[]): Promise<Kind> {
  return JSON.parse(await kubectl('get', '-o', 'json', ...args)) as Kind;
}

export function helm(...args: readonly string[]): Promise<string> {
  return run(ENTER, [...ENTERED, join(HELM_BIN, 'helm'), ...args], { env });
}
