import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type BundledPackage, keyOf } from './bundled-packages.ts';

/** The parts of npm's answer that are changed here; CycloneDX 1.5 has more of them. */
interface BillOfMaterials {
  readonly serialNumber: string;
  readonly metadata: {
    readonly timestamp: string;
    readonly component: Component;
    readonly [more: string]: unknown;
  };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
  readonly [more: string]: unknown;
}

interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly [more: string]: unknown;
}

/**
 * npm's bill of materials (CycloneDX, JSON) of all that is installed, cut down to what is bundled, without the time and
 * the random number that would make each build another one.
 * @throws {Error} when a bundled package is not in package-lock.json.
 */
export async function writeBillOfMaterials(
  root: string,
  packages: readonly BundledPackage[],
): Promise<string> {
  const { serialNumber: _random, metadata, components, dependencies, ...bill } = await readAll(root);
  const { timestamp: _now, tools: _version, ...lasting } = metadata;
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { name: string };
  const own = metadata.component['bom-ref'];
  const bundled = new Set(packages.map(keyOf));
  const kept = components.filter((component) => bundled.has(keyOf(component)));
  const missing = packages.filter((each) => !kept.some((component) => keyOf(component) === keyOf(each)));
  if (missing.length > 0) {
    throw new Error(`bundled and not in package-lock.json: ${missing.map(keyOf).join(', ')}`);
  }
  const refs = new Set([own, ...kept.map((component) => component['bom-ref'])]);
  return `${JSON.stringify(
    {
      ...bill,
      // npm takes the name of the directory.
      metadata: { ...lasting, component: { ...metadata.component, name: manifest.name } },
      components: kept,
      dependencies: dependencies
        .filter(({ ref }) => refs.has(ref))
        .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) })),
    },
    null,
    2,
  )}\n`;
}

async function readAll(root: string): Promise<BillOfMaterials> {
  // From the lock file alone: what is installed differs between machines by the packages made for each of them.
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const { stdout } = await promisify(execFile)('npm', args, { cwd: root, maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout) as BillOfMaterials;
}
