/** What is in no text: control characters, and what stands for octets that are not UTF-8. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
export const NOT_TEXT = /[\0-\x08\x0B\x0C\x0E-\x1F\x7F\uFFFD]/;

/**
 * An object in JSON as programs such as the injector write it: without spaces, each value in its usual form. It means
 * the same in YAML, whose parser costs a start 20 ms and 2 MB. A duplicate key is written back once, and thereby
 * refused.
 * @returns undefined for any other text.
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
