import { chmod, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { build, type CodeSplittingGroup, type Plugin, type PreRenderedChunk } from 'rolldown';
import { readRunbooks } from '../../src/cli/explain/runbooks.ts';
import { inAscii } from './ascii.ts';
import { builtinsWithoutImports } from './builtin-modules.ts';
import { logWithoutOutputs } from './log-parts.ts';

const ENTRY = 'token-sidecar';

/** What it is written for: src/launcher.ts refuses older ones. */
const OLDEST_NODE = 'node22.15';

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

/**
 * Each command gets a file of its own: the sidecar's thereby holds nothing that only another command needs. What it imports
 * where it is needed, by `import()`, gets one beside it: V8 reads every line of a file that it loads.
 */
export async function bundleProgram(options: ProgramOptions): Promise<BundledFile[]> {
  const { root, output } = options;
  const commands = await readCommands(root);
  const plugins = [
    commandsAreSeparate(commands),
    pageIsBuilt(root),
    runbooksAreThere(root),
    logWithoutOutputs(),
    builtinsWithoutImports(),
  ];
  // The bundler would put a file that awaits at its top level behind another one.
  const files = [
    ...(await bundle(join(root, 'src/launcher.ts'), ENTRY, false, plugins, options)),
    ...(await bundle(join(root, 'src/main.ts'), 'main', false, plugins, options)),
  ];
  for (const [file, name] of commands) files.push(...(await bundle(file, name, true, plugins, options)));
  await chmod(join(output, `${ENTRY}.js`), 0o755);
  return files;
}

/** The rows of src/cli/all.ts: the file of each command, and its name. */
async function readCommands(root: string): Promise<ReadonlyMap<string, string>> {
  const table = join(root, 'src/cli/all.ts');
  const rows = (await readFile(table, 'utf8')).matchAll(/import\('([^']+)'\)\)\.(\w+)/g);
  return new Map([...rows].map(([, file, name]) => [join(dirname(table), file as string), name as string]));
}

/** `import('../sidecar/program.ts')` in cli/all.ts becomes `import('./proxy.js')`, the bundle of that command. */
function commandsAreSeparate(commands: ReadonlyMap<string, string>): Plugin {
  return {
    name: 'commands-are-separate',
    resolveId(source, importer = '') {
      const name = importer.endsWith('/src/launcher.ts')
        ? { './main.ts': 'main' }[source]
        : importer.endsWith('/src/cli/all.ts') && commands.get(join(dirname(importer), source));
      return name ? { id: `./${name}.js`, external: true } : null;
    },
  };
}

/** What the status page runs in a browser is part of the bundle, without its types and short. */
function pageIsBuilt(root: string): Plugin {
  const page = join(root, 'src/sidecar/status/page');
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

/** The texts themselves, as `docs` is not where the program runs. */
function runbooksAreThere(root: string): Plugin {
  return {
    name: 'runbooks-are-there',
    load(id) {
      if (id !== join(root, 'src/cli/explain/runbooks.ts')) return null;
      return `export const readRunbooks = () => (${JSON.stringify(readRunbooks(join(root, 'docs/runbooks')))});`;
    },
  };
}

async function bundle(
  input: string,
  name: string,
  mayHaveParts: boolean,
  plugins: readonly Plugin[],
  { output, revision }: ProgramOptions,
): Promise<BundledFile[]> {
  const { output: results } = await build({
    input,
    platform: 'node',
    plugins: [...plugins],
    // Parts import what they share with the command from its own file.
    preserveEntrySignatures: 'allow-extension',
    transform: { define: { __REVISION__: JSON.stringify(revision) }, target: OLDEST_NODE },
    output: {
      dir: output,
      entryFileNames: `${name}.js`,
      chunkFileNames: (chunk) => `${name}-${partName(chunk)}.js`,
      format: 'esm',
      codeSplitting: mayHaveParts && { groups: [atOnce(name)] },
      sourcemap: true,
      minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
      // What they say is in THIRD-PARTY-LICENSES.txt.
      comments: { legal: false },
    },
    logLevel: 'warn',
  });
  const chunks = results.filter((result) => result.type === 'chunk');
  // The bundler's own helpers have no map, and nothing to escape.
  const mapped = chunks.filter(({ map }) => map !== null);
  for (const { fileName } of mapped) await rewriteInAscii(join(output, fileName));
  return chunks.map(({ fileName, modules }) => ({
    name: fileName,
    modules: Object.entries(modules)
      .filter(([, { code }]) => code !== null)
      .map(([id]) => id),
  }));
}

/** One of all that is loaded at once: each file more costs a start half a millisecond. */
function atOnce(name: string): CodeSplittingGroup {
  return { name, tags: ['$initial'] };
}

/** The package that a part is, or its first file. */
function partName({ name, facadeModuleId }: PreRenderedChunk): string {
  const [, ofPackage] = /.*\/node_modules\/(?:@[^/]+\/)?([^/]+)/.exec(facadeModuleId ?? '') ?? [];
  return ofPackage ?? name;
}

/** The bundler has no setting for it. */
async function rewriteInAscii(file: string): Promise<void> {
  const map = `${file}.map`;
  const [code, mapText] = await Promise.all([readFile(file, 'utf8'), readFile(map, 'utf8')]);
  const ascii = inAscii({ code, map: JSON.parse(mapText) as { mappings: string } });
  await Promise.all([writeFile(file, ascii.code), writeFile(map, JSON.stringify(ascii.map))]);
}
