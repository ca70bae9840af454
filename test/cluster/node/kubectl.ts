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

/** The same, with `input` for its standard input. */
function kubectlReading(input: string, ...args: readonly string[]): Promise<string> {
  return run(ENTER, [...ENTERED, join(KUBERNETES_BIN, 'kubectl'), ...args], { env, input });
}

/** Applies manifests, given as objects: JSON after JSON, which kubectl 1.29 reads only without `---` between. */
export function apply(...objects: readonly object[]): Promise<string> {
  const input = objects.map((object) => JSON.stringify(object)).join('\n');
  return kubectlReading(input, 'apply', '-f', '-');
}

/** Creates an object, with kubectl's `flags`, and gives it as the API then has it. */
export async function create<Kind>(object: object, ...flags: readonly string[]): Promise<Kind> {
  const input = JSON.stringify(object);
  return JSON.parse(await kubectlReading(input, 'create', '-o', 'json', ...flags, '-f', '-')) as Kind;
}

/** An object, or a list of them, as the API has it. */
export async function get<Kind>(...args: readonly string[]): Promise<Kind> {
  return JSON.parse(await kubectl('get', '-o', 'json', ...args)) as Kind;
}

export function helm(...args: readonly string[]): Promise<string> {
  return run(ENTER, [...ENTERED, join(HELM_BIN, 'helm'), ...args], { env });
}
