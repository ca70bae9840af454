/** Parses YAML and JSON in parts, while requests are served. */

import type { Alias, CST, Document, Scalar, YAMLParseError } from 'yaml';
import type { Place, Problem, ProblemCode } from '../platform/problems.ts';
import { nextTurn, yieldEvery } from '../platform/time/async.ts';
import { SourceText } from './source-text.ts';

interface ParsedText {
  /** As JSON would represent it. */
  readonly value: unknown;
  readonly source: SourceText;
}

/** Aliases of aliases expand without bound. */
const MAX_ALIASES = 100;

const ANCHOR = 'an anchor of this name before it, or quotes around text that begins with *';

/** Beyond it the parser's stack overflows. */
const DEEPEST = 200;

const CODES: Readonly<Record<string, ProblemCode>> = {
  TAB_AS_INDENT: 'tab_indentation',
  BAD_ALIAS: 'unknown_alias',
  RESOURCE_EXHAUSTION: 'too_deep',
};

/**
 * Undefined, with problems, if the text cannot be parsed.
 * @param path for messages.
 * @param keys whose values may be shown.
 */
export async function parseYaml(
  text: string,
  path: string,
  keys: ReadonlySet<string>,
  problems: Problem[],
): Promise<ParsedText | undefined> {
  // Only a sidecar with a file loads the parser.
  const { isAlias, visit } = await import('yaml');
  const source = new SourceText(path, text, (key) => keys.has(key));
  const report = (at: Place, code: ProblemCode, expected: string, more: Partial<Problem> = {}): void => {
    problems.push({ key: `${at.file}:${at.line}:${at.column}`, expected, code, place: at, ...more });
  };

  const odd = NOT_TEXT.exec(text);
  if (odd !== null && UTF_16.test(text)) {
    const expected = 'text in UTF-8, and this begins with the byte order mark of UTF-16';
    const remedy = 'Save the file as UTF-8, by your editor or iconv -f utf-16 -t utf-8.';
    report(source.amongUnknown(0), 'file_not_text', expected, { remedy });
    return undefined;
  }
  if (odd?.[0] === BYTE_ORDER_MARK) {
    const expected = 'text without a byte order mark (U+FEFF) in it';
    const remedy = 'Delete the invisible character at this place: files that were joined leave it.';
    report(source.at(odd.index), 'file_not_text', expected, { remedy });
    return undefined;
  }
  if (odd !== null) {
    const number = (odd[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    report(source.at(odd.index), 'file_not_text', `text in UTF-8 instead of the character U+${number}`);
    return undefined;
  }
  const deep = tooDeep(text);
  if (deep !== undefined) {
    report(source.at(deep), 'too_deep', `brackets at most ${DEEPEST} deep`);
    return undefined;
  }
  let document: Document.Parsed;
  try {
    document = await parseInParts(text);
  } catch {
    // Usually its stack.
    report(source.at(0), 'too_deep', 'a file that the parser can take apart');
    return undefined;
  }
  if (document.errors.length > 0) {
    for (const error of worthReporting(document.errors)) {
      const [from, end] = error.pos;
      if (error.code === 'DUPLICATE_KEY') {
        const to = from + (/^\S+?(?=\s*:|$)/m.exec(text.slice(from))?.[0].length ?? 1);
        const before = keyBefore(document, from, visit);
        const earlier = before === undefined ? undefined : source.amongUnknown(...before);
        const where = earlier === undefined ? '' : `, but this one is in line ${earlier.line}, too`;
        const more = earlier === undefined ? {} : { earlier };
        report(source.amongUnknown(from, to), 'duplicate_key', `each key once${where}`, more);
        continue;
      }
      const expected = expectedYaml('valid YAML or JSON', error.code);
      report(source.amongUnknown(from, end), codeFor(error, text), expected);
    }
    return undefined;
  }
  const aliases: Alias[] = [];
  visit(document, (_key, node) => {
    if (isAlias(node)) aliases.push(node);
  });
  const unknown = aliases.filter((alias) => alias.resolve(document) === undefined);
  for (const { range } of unknown) report(source.at(...rangeOf(range)), 'unknown_alias', ANCHOR);
  if (unknown.length > 0) return undefined;
  source.understoodAs(document);
  await nextTurn();
  try {
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }), source };
  } catch {
    const at = rangeOf(aliases.at(-1)?.range);
    report(source.at(...at), 'too_many_aliases', `at most ${MAX_ALIASES} aliases in all that they stand for`);
    return undefined;
  }
}

/** Where the key at an offset stands before, in the same mapping. */
function keyBefore(
  document: Document.Parsed,
  offset: number,
  visit: typeof import('yaml').visit,
): [number, number] | undefined {
  let found: [number, number] | undefined;
  visit(document, {
    Map(_key, { items }) {
      const keys = items.map(({ key }) => key as Scalar);
      const own = keys.find((key) => key.range?.[0] === offset);
      if (own === undefined) return undefined;
      const first = keys.find(({ value }) => value === own.value);
      if (first !== undefined && first !== own) found = rangeOf(first.range);
      return visit.BREAK;
    },
  });
  return found;
}

function rangeOf(range: Alias['range']): [number, number] {
  return range == null ? [0, 1] : [range[0], range[1]];
}

/** After the first syntax error the parser guesses. */
function worthReporting(errors: readonly YAMLParseError[]): YAMLParseError[] {
  const first = errors.find(({ code }) => code !== 'DUPLICATE_KEY');
  return errors.filter((error) => error === first || error.code === 'DUPLICATE_KEY');
}

/** The mistake is the tab, whatever the parser calls it. */
function codeFor({ code, pos: [from] }: YAMLParseError, text: string): ProblemCode {
  const lineStart = text.lastIndexOf('\n', Math.max(0, from - 1)) + 1;
  if (/^ *\t/.test(text.slice(lineStart))) return 'tab_indentation';
  return (Object.hasOwn(CODES, code) ? CODES[code] : undefined) ?? 'invalid_yaml';
}

/** Ignores quotes and comments: no real file opens as many brackets. */
function tooDeep(text: string): number | undefined {
  let depth = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text.charCodeAt(index);
    if (character === OPEN_BRACKET || character === OPEN_BRACE) depth += 1;
    else if (character === CLOSE_BRACKET || character === CLOSE_BRACE) depth = Math.max(0, depth - 1);
    if (depth > DEEPEST) return index;
  }
  return undefined;
}

const [OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

/** A few milliseconds. */
const LEXEMES_AT_ONCE = 2000;

/**
 * The library's `parseDocument`, in turns.
 * @throws {RangeError} if the parser's stack overflows.
 */
async function parseInParts(text: string): Promise<Document.Parsed> {
  const { Composer, Lexer, Parser, YAMLParseError } = await import('yaml');
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const pause = yieldEvery(LEXEMES_AT_ONCE);
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    const turn = pause();
    if (turn !== undefined) await turn;
  }
  for (const token of parser.end()) tokens.push(token);
  await nextTurn();
  // They would quote the text on standard error.
  const composer = new Composer({ uniqueKeys: true, strict: true, prettyErrors: false, logLevel: 'error' });
  const [document, second] = composer.compose(tokens, true, text.length);
  if (document === undefined) throw new RangeError('a text without a document');
  if (second !== undefined) {
    const [from, to] = second.range;
    document.errors.push(new YAMLParseError([from, to], 'MULTIPLE_DOCS', 'a second document'));
  }
  await nextTurn();
  return document as Document.Parsed;
}

/** May begin a file. */
export const BYTE_ORDER_MARK = '\uFEFF';

/** Control characters, a byte order mark, or no UTF-8. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const NOT_TEXT = /[\0-\x08\x0B\x0C\x0E-\x1F\x7F\uFEFF\uFFFD]/;

/** Read as UTF-8. Every second byte of its letters is 0. */
const UTF_16 = /^\uFFFD\uFFFD(?:[^\0]\0|\0)/;

/**
 * Compact JSON, as the injector writes it. YAML's parser costs a start 20 ms and 2 MB. A duplicate key is
 * refused.
 * @returns undefined for other text.
 */
export function parseShortJson(text: string): object | undefined {
  if (NOT_TEXT.test(text)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isMapping && JSON.stringify(value) === text ? (value as object) : undefined;
}

/** The parser's own messages may quote a secret. */
const EXPECTED: Readonly<Record<string, string>> = {
  BAD_DQ_ESCAPE: 'a backslash in double quotes only where YAML knows the escape',
  BAD_INDENT: 'every bracket closed, and one indentation within a mapping or list',
  BAD_SCALAR_START: 'quotes around text that begins with @ or `',
  BLOCK_AS_IMPLICIT_KEY: 'one key to a line, and quotes around text that holds ": "',
  DUPLICATE_KEY: 'each key once',
  MISSING_CHAR: 'nothing left open or wrongly indented before this place',
  MULTILINE_IMPLICIT_KEY: 'a key, its colon and a space on one line',
  MULTIPLE_DOCS: 'one document',
  TAB_AS_INDENT: 'indentation by spaces',
  UNEXPECTED_TOKEN: 'either a list or a mapping, and nothing behind a value',
};

/** `host: *.example.com` is an alias. */
export const ALIASES =
  'aliases that name an anchor before them, and not too many; quotes around text that begins with *';

/** `valid YAML: each key once (DUPLICATE_KEY)`; or the code alone. */
export function expectedYaml(language: string, code: string): string {
  const words = Object.hasOwn(EXPECTED, code) ? EXPECTED[code] : undefined;
  return words === undefined ? `${language} (${code})` : `${language}: ${words} (${code})`;
}
