import { decode, encode, type SourceMapMappings } from '@jridgewell/sourcemap-codec';

/** A program and its source map (ECMA-426). */
export interface MappedCode {
  readonly code: string;
  readonly map: { readonly mappings: string };
}

const BEYOND_ASCII = /[^\0-\x7f]/g;

/** Pairs of backslashes are characters of their own. */
const AFTER_BACKSLASH = /(?<!\\)(?:\\\\)*\\[^\0-\x7f]/;

/**
 * The same program in ASCII. V8 keeps a text of which one character is outside Latin-1 in two octets a character, for as
 * long as the program runs. Code without comments has such characters in strings, templates, regular expressions and
 * names, and each of these may have them escaped.
 * @throws {Error} for a character that has a backslash before it, which would be the escape's own.
 */
export function inAscii<Map extends MappedCode['map']>(program: {
  readonly code: string;
  readonly map: Map;
}): { code: string; map: Map } {
  const lines = program.code.split('\n');
  const mappings: SourceMapMappings = decode(program.map.mappings);
  for (const [index, line] of lines.entries()) {
    const at = Array.from(line.matchAll(BEYOND_ASCII), (match) => match.index);
    if (at.length === 0) continue;
    if (AFTER_BACKSLASH.test(line)) throw new Error(`a character outside ASCII follows a backslash: ${line}`);
    lines[index] = line.replace(BEYOND_ASCII, escaped);
    let before = 0;
    for (const segment of mappings[index] ?? []) {
      while (before < at.length && (at[before] as number) < segment[0]) before++;
      segment[0] += before * ADDED_CHARS;
    }
  }
  return { code: lines.join('\n'), map: { ...program.map, mappings: encode(mappings) } };
}

/** By half of a pair, where the character is one. */
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const ADDED_CHARS = escaped('…').length - 1;
