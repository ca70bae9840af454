/**
 * Puts the parser's error codes into words. Its own messages may quote their line, and with it a secret; code and place
 * are enough.
 */

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

/** What is wrong if a document's aliases cannot be resolved: `host: *.example.com` is an alias. */
export const ALIASES =
  'aliases that name an anchor before them, and not too many; quotes around text that begins with *';

/** `valid YAML: each key once (DUPLICATE_KEY)`; without words for the code, the code alone. */
export function expectedYaml(language: string, code: string): string {
  const words = Object.hasOwn(EXPECTED, code) ? EXPECTED[code] : undefined;
  return words === undefined ? `${language} (${code})` : `${language}: ${words} (${code})`;
}
