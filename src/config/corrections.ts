/** What was probably meant by a wrong value, as it has to be written. */

import { redactedValue } from '../platform/log/redacted-text.ts';
import { nearestName } from './suggestion.ts';
import { formats, type ValueFormat } from './values.ts';

/**
 * For a value that is not in the expected format. Undefined if nothing is probable, or it may be a secret.
 * @param key of the setting.
 */
export function correctedText(text: string, expected: string, key: string): string | undefined {
  for (const { of, correct } of CORRECTIONS) {
    const format = of.find((one) => one.expected === expected);
    const corrected = format === undefined ? undefined : correct(text);
    if (corrected !== undefined && format?.parse(corrected) !== undefined)
      return redactedValue(corrected, key);
  }
  const [, words] = /^one of (.+)$/.exec(expected) ?? [];
  return words === undefined ? undefined : nearestWord(text, words.split(', '));
}

interface WrongValue {
  /** What the schema wants, such as `string`. */
  readonly type: string;
  readonly input: unknown;
  readonly message: string;
}

/** As it has to be written in YAML. @param name of the setting. */
export function correctedValue(
  name: string,
  { type, input, message: expected }: WrongValue,
): string | undefined {
  if (type === 'boolean') return nearestWord(String(input), ['true', 'false']);
  if (type === 'number') return typeof input === 'string' && /^\d{1,9}$/.test(input) ? input : undefined;
  if (typeof input === 'string') return correctedText(input, expected, name);
  if (type !== 'string') return undefined;
  if (Array.isArray(input)) {
    const isText = input.every((one) => typeof one === 'string') && (name === 'scope' || input.length === 1);
    return isText ? inQuotes(input.join(' '), name) : undefined;
  }
  if (typeof input !== 'boolean' && !Number.isSafeInteger(input)) return undefined;
  if (typeof input === 'number' && expected === formats.duration.expected) {
    return formats.duration.parse(`${input}s`) === undefined ? undefined : `${input}s, if seconds are meant`;
  }
  const format = Object.values<ValueFormat<unknown>>(formats).find((one) => one.expected === expected);
  const isEnough = format === undefined || format.parse(String(input)) !== undefined;
  return isEnough ? inQuotes(String(input), name) : undefined;
}

function inQuotes(text: string, name: string): string | undefined {
  const shown = redactedValue(text, name);
  return shown === undefined ? undefined : JSON.stringify(shown);
}

interface Correction {
  readonly of: readonly ValueFormat<unknown>[];
  correct(text: string): string | undefined;
}

const CORRECTIONS: readonly Correction[] = [
  {
    of: [formats.duration, formats.recoveryTime],
    correct(text) {
      const [, number, unit] = /^(\d{1,9}(?:\.\d{1,3})?)\s*([a-z]+)$/i.exec(text) ?? [];
      const known = UNITS_OF_TIME.find(([pattern]) => pattern.test(unit ?? ''))?.[1];
      return known === undefined ? undefined : `${number}${known}`;
    },
  },
  {
    of: [formats.size, formats.windowSize],
    correct(text) {
      const [, number, unit] = /^(\d{1,12})\s*([kmg])i?b?$/i.exec(text) ?? [];
      return unit === undefined ? undefined : `${number}${unit.toUpperCase()}i`;
    },
  },
  {
    of: [formats.serverUrl, formats.tokenEndpointUrl],
    // An address, a Service or another port is often clear text.
    correct: (text) =>
      /^(?!.*\.(?:svc|local)\b)(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*(?::443)?(?:\/[^\s?#@:]*)?$/i.test(text)
        ? `https://${text}`
        : undefined,
  },
];

const UNITS_OF_TIME: readonly (readonly [RegExp, string])[] = [
  [/^(?:ms|msecs?|milliseconds?)$/i, 'ms'],
  [/^(?:s|secs?|seconds?)$/i, 's'],
  [/^(?:m|mins?|minutes?)$/i, 'm'],
  [/^(?:h|hrs?|hours?)$/i, 'h'],
  [/^(?:d|days?)$/i, 'd'],
];

/** Other programs have them. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  http2: 'h2',
  'http/2': 'h2',
  'http/1.1': 'http1',
  warning: 'warn',
  yes: 'true',
  on: 'true',
  1: 'true',
  no: 'false',
  off: 'false',
  0: 'false',
};

function nearestWord(text: string, words: readonly string[]): string | undefined {
  const other = Object.hasOwn(OTHER_WORDS, text.toLowerCase()) ? OTHER_WORDS[text.toLowerCase()] : undefined;
  return other !== undefined && words.includes(other) ? other : nearestName(text, words);
}
