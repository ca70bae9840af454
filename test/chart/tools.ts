/** The programs of scripts/install-tools.ts. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));
export const CHART = `${ROOT}charts/token-sidecar`;
export const TOOLS = `${ROOT}.cache/tools`;

export type Tool =
  | 'alertmanager'
  | 'actionlint'
  | 'helm'
  | 'kubectl-validate'
  | 'kustomize'
  | 'prometheus'
  | 'promtool';

export interface Outcome {
  readonly ok: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** Prometheus may be the system's own; the others are always the pinned ones. */
export function pathOf(tool: Tool): string {
  const installed = `${TOOLS}/bin/${tool}`;
  if (existsSync(installed)) return installed;
  if (tool === 'prometheus' || tool === 'promtool') return tool;
  throw new Error(`${installed} is missing: run node scripts/install-tools.ts`);
}

/** Runs a tool to its end, cut off from any cluster that the developer's kubeconfig names. */
export function run(
  tool: Tool,
  args: readonly string[],
  options: { readonly cwd?: string; readonly input?: string } = {},
): Promise<Outcome> {
  const env = { ...process.env, KUBECONFIG: '/dev/null' };
  return new Promise((resolve) => {
    const { stdin } = execFile(
      pathOf(tool),
      args,
      { env, cwd: options.cwd ?? ROOT, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => resolve({ ok: error === null, stdout, stderr }),
    );
    stdin?.end(options.input);
  });
}
