/**
 * Bundles for production: `dist/token-sidecar.js`, which picks a command, and one self-contained file a command
 * beside it. The sidecar's file thereby holds nothing that only another command needs.
 */

import { execFileSync } from 'node:child_process';
import { chmod, readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { build, type Plugin } from 'rolldown';

const ROOT = join(import.meta.dirname, '..');
const OUTPUT = join(ROOT, 'dist');
const ENTRY = 'token-sidecar';

/** `import('./commands/proxy.ts')` in main.ts becomes `import('./proxy.js')`, the bundle of that command. */
const commandsAreSeparate: Plugin = {
  name: 'commands-are-separate',
  resolveId(source, importer) {
    if (importer?.endsWith('/src/main.ts') !== true || !source.startsWith('./commands/')) return null;
    const name = basename(source, '.ts');
    return commandNames.includes(name) ? { id: `./${name}.js`, external: true } : null;
  },
};

const commandNames = await readCommandNames();

await rm(OUTPUT, { recursive: true, force: true });
await bundle(join(ROOT, 'src/main.ts'), ENTRY);
for (const name of commandNames) await bundle(join(ROOT, `src/commands/${name}.ts`), name);
await chmod(join(OUTPUT, `${ENTRY}.js`), 0o755);

/** The commands that main.ts can load: those files of src/commands that export a constant of their own name. */
async function readCommandNames(): Promise<string[]> {
  const files = (await readdir(join(ROOT, 'src/commands'))).filter((file) => file.endsWith('.ts'));
  const names = files.map((file) => basename(file, '.ts'));
  const exporting = await Promise.all(
    names.map(async (name) => name in (await import(join(ROOT, `src/commands/${name}.ts`)))),
  );
  return names.filter((_, index) => exporting[index]);
}

async function bundle(input: string, name: string): Promise<void> {
  await build({
    input,
    platform: 'node',
    plugins: [commandsAreSeparate],
    transform: { define: { __REVISION__: JSON.stringify(revision()) } },
    output: {
      file: join(OUTPUT, `${name}.js`),
      format: 'esm',
      codeSplitting: false,
      sourcemap: true,
      minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
      comments: { legal: false },
    },
    logLevel: 'warn',
  });
}

/** The commit that is built; an image build passes it in, having no checkout. */
function revision(): string {
  const given = process.env['REVISION'];
  if (given !== undefined && given !== '') return given;
  try {
    return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim();
  } catch {
    // Not a checkout, such as an unpacked archive.
    return 'unknown';
  }
}
