import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { build, type Plugin } from 'rolldown';
import { inAscii } from './ascii.ts';

const ENTRY = 'token-sidecar';

/** What it is written for: src/launcher.ts refuses older ones. */
const OLDEST_NODE = 'node22.15';

/** What a command loads only when it needs it, as large as all the rest of it: files of src/commands. */
const PARTS: readonly string[] = [
  'broker-cluster',
  'injector-cluster',
  'interception',
  'profile-rules',
  'tracing',
  'status-page',
];

/** A file of the program and the modules whose code is in it. */
export interface BundledFile {
  readonly name: string;
  /** Absolute paths; those that the bundler itself brings begin with a null character. */
  readonly modules: readonly string[];
}

export interface ProgramOptions {
  readonly root: string;
  readonly output: string;
  /** The commit that the program says it is. */
  readonly revision: string;
}

/** Each command gets a file of its own: the sidecar's thereby holds nothing that only another command needs. */
export async function bundleProgram(options: ProgramOptions): Promise<BundledFile[]> {
  const { root, output } = options;
  const commands = await readCommandNames(root);
  const plugins = [commandsAreSeparate(commands), pageIsBuilt(root)];
  const files = [
    await bundle(join(root, 'src/launcher.ts'), ENTRY, plugins, options),
    await bundle(join(root, 'src/main.ts'), 'main', plugins, options),
  ];
  for (const name of [...commands, ...PARTS]) {
    files.push(await bundle(join(root, `src/commands/${name}.ts`), name, plugins, options));
  }
  await chmod(join(output, `${ENTRY}.js`), 0o755);
  return files;
}

/** The commands that there are: those files of src/commands that export a constant of their own name. */
async function readCommandNames(root: string): Promise<string[]> {
  const files = (await readdir(join(root, 'src/commands'))).filter((file) => file.endsWith('.ts'));
  const names = files.map((file) => basename(file, '.ts')).sort();
  const exporting = await Promise.all(
    names.map(async (name) => name in (await import(join(root, `src/commands/${name}.ts`)))),
  );
  return names.filter((_, index) => exporting[index]);
}

/** `import('./proxy.ts')` in commands/all.ts becomes `import('./proxy.js')`, the bundle of that command; parts likewise. */
function commandsAreSeparate(commands: readonly string[]): Plugin {
  return {
    name: 'commands-are-separate',
    resolveId(source, importer) {
      const name = basename(source, '.ts');
      if (importer?.endsWith('/src/launcher.ts') === true) return { id: `./${name}.js`, external: true };
      // Other rooms have files of the same names.
      if (importer?.includes('/src/commands/') !== true || source !== `./${name}.ts`) return null;
      const isApart = PARTS.includes(name) || (importer.endsWith('/all.ts') && commands.includes(name));
      return isApart ? { id: `./${name}.js`, external: true } : null;
    },
  };
}

/** What the status page runs in a browser is part of the bundle, without its types and short. */
function pageIsBuilt(root: string): Plugin {
  const page = join(root, 'src/admin/page');
  return {
    name: 'page-is-built',
    async load(id) {
      if (id !== join(page, 'browser-script.ts')) return null;
      const { output } = await build({
        input: join(page, 'browser.ts'),
        platform: 'browser',
        output: { format: 'esm', minify: true },
        write: false,
        logLevel: 'warn',
      });
      return `export const browserScript = () => ${JSON.stringify(output[0].code)};`;
    },
  };
}

async function bundle(
  input: string,
  name: string,
  plugins: readonly Plugin[],
  { output, revision }: ProgramOptions,
): Promise<BundledFile> {
  const file = `${name}.js`;
  const { output: chunks } = await build({
    input,
    platform: 'node',
    plugins: [...plugins],
    transform: { define: { __REVISION__: JSON.stringify(revision) }, target: OLDEST_NODE },
    output: {
      file: join(output, file),
      format: 'esm',
      codeSplitting: false,
      sourcemap: true,
      minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
      // What they say is in THIRD-PARTY-LICENSES.txt.
      comments: { legal: false },
    },
    logLevel: 'warn',
  });
  await rewriteInAscii(join(output, file));
  const modules = chunks.flatMap((chunk) => (chunk.type === 'chunk' ? Object.entries(chunk.modules) : []));
  return { name: file, modules: modules.filter(([, { code }]) => code !== null).map(([id]) => id) };
}

/** The bundler has no setting for it. */
async function rewriteInAscii(file: string): Promise<void> {
  const map = `${file}.map`;
  const [code, mapText] = await Promise.all([readFile(file, 'utf8'), readFile(map, 'utf8')]);
  const ascii = inAscii({ code, map: JSON.parse(mapText) as { mappings: string } });
  await Promise.all([writeFile(file, ascii.code), writeFile(map, JSON.stringify(ascii.map))]);
}
