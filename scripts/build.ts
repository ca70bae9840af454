/**
 * Builds for production into dist/: `token-sidecar.js`, which picks a command, one file a command and
 * its parts beside it, and what tells where it all comes from: THIRD-PARTY-LICENSES.txt and sbom.cdx.json. The same sources and
 * revision give the same bytes, wherever they are built.
 */

import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readBundledPackages } from './build/bundled-packages.ts';
import { bundleProgram } from './build/program.ts';
import { readRevision } from './build/revision.ts';
import { writeBillOfMaterials } from './build/software-bill-of-materials.ts';
import { formatLicences } from './build/third-party-licences.ts';

const ROOT = join(import.meta.dirname, '..');
const OUTPUT = join(ROOT, 'dist');

await rm(OUTPUT, { recursive: true, force: true });
const files = await bundleProgram({
  root: ROOT,
  output: OUTPUT,
  revision: readRevision(ROOT, process.env),
});
const packages = await readBundledPackages(ROOT, files);
await writeFile(join(OUTPUT, 'THIRD-PARTY-LICENSES.txt'), formatLicences(packages));
await writeFile(join(OUTPUT, 'sbom.cdx.json'), await writeBillOfMaterials(ROOT, packages));
