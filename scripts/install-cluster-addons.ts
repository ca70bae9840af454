/** Compiles what scenarios of `test/cluster/addons` put beside Kubernetes, once for each version, outside the tree: some minutes each. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ADDONS, type AddonName, addonBin, addonProgram } from '../test/cluster/addons/programs.ts';
import { CACHE } from '../test/cluster/node/versions.ts';

const run = promisify(execFile);

async function build(name: AddonName): Promise<void> {
  const addon: (typeof ADDONS)[AddonName] & { readonly sums?: readonly string[] } = ADDONS[name];
  const { module, version, programs, sums = [] } = addon;
  const missing = programs.filter((program) => !existsSync(addonProgram(name, program)));
  if (missing.length === 0) return;
  const directory = join(CACHE, `build-${name}-${version}`);
  await mkdir(directory, { recursive: true });
  await mkdir(addonBin(name), { recursive: true });
  await writeFile(join(directory, 'go.mod'), `module addon\n\ngo 1.24.0\n\nrequire ${module} ${version}\n`);
  await writeFile(join(directory, 'go.sum'), sums.map((line) => `${line}\n`).join(''));
  const imports = programs.map((program) => `import _ "${module}/${program}"`);
  await writeFile(
    join(directory, 'programs.go'),
    `//go:build programs\n\npackage addon\n\n${imports.join('\n')}\n`,
  );
  const unknown = new Set(sums.map((line) => line.split(' ')[0]));
  /** Compiles with low priority: the machine may have other work. */
  const go = (...args: string[]) =>
    run('nice', ['-n', '10', 'go', ...args], {
      cwd: directory,
      env: {
        ...process.env,
        CGO_ENABLED: '0',
        GOFLAGS: '-mod=mod',
        // Checked by the lines above instead.
        ...(sums.length > 0 ? { GONOSUMDB: [...unknown].join(',') } : {}),
      },
      maxBuffer: 64 * 1024 * 1024,
    });
  await go('mod', 'tidy', '-e');
  for (const program of missing) {
    process.stdout.write(`compiling ${module}/${program} ${version}\n`);
    const unfinished = `${addonProgram(name, program)}.unfinished`;
    await go('build', '-trimpath', '-ldflags', '-s -w', '-o', unfinished, `${module}/${program}`);
    await rename(unfinished, addonProgram(name, program));
  }
}

for (const name of Object.keys(ADDONS) as AddonName[]) await build(name);
