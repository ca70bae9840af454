import type { Plugin } from 'rolldown';

/** As the bundler writes it, on a line of its own: the whole module by a name, some of its parts, or both. */
const IMPORT = /^import (?:(?:\* as )?([\w$]+))?(?:, )?(\{.+\})? from "(node:[a-z0-9_/]+)";$/gm;

/**
 * Gets Node's own modules without import statements. Linking an ES module reads every export of those it imports, and some
 * exports load what is behind them when they are read: of node:util worker threads and a comparison of texts, of node:crypto
 * all of Web Crypto. It costs half a megabyte and some milliseconds of a start.
 */
export function builtinsWithoutImports(): Plugin {
  return {
    name: 'builtins-without-imports',
    renderChunk(code) {
      // Line by line, so that the source map stays as it is.
      return { code: code.replaceAll(IMPORT, declaration), map: null };
    },
  };
}

function declaration(_: string, whole: string | undefined, parts: string | undefined, name: string): string {
  const module = `process.getBuiltinModule("${name}")`;
  const bound = [whole, parts?.replaceAll(' as ', ': ')].filter((each) => each !== undefined);
  return `const ${bound.map((each) => `${each} = ${module}`).join(', ')};`;
}
