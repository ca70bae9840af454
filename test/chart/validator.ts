/** Strict validation of manifests against the schemas of a Kubernetes version and of the custom resources. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Outcome, ROOT, run, TOOLS } from './tools.ts';

/** Versions whose schemas are not in kubectl-validate itself. */
const LOCAL_SCHEMAS: Readonly<Record<string, string>> = { '1.36': `${TOOLS}/schemas/kubernetes-1.36` };

/** Unknown fields, wrong types, unknown kinds: all of them fail. `files` are texts by name. */
export async function validate(kubernetes: string, files: ReadonlyMap<string, string>): Promise<Outcome> {
  const directory = await mkdtemp(join(tmpdir(), 'manifests-'));
  try {
    for (const [name, text] of files) await writeFile(join(directory, `${name}.yaml`), text);
    const schemas = LOCAL_SCHEMAS[kubernetes];
    return await run('kubectl-validate', [
      ...(schemas === undefined ? ['--version', kubernetes] : ['--local-schemas', schemas]),
      '--local-crds',
      `${TOOLS}/crds`,
      '--local-crds',
      `${ROOT}charts/token-sidecar/files/crds`,
      directory,
    ]);
  } finally {
    await rm(directory, { recursive: true });
  }
}
