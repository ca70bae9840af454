import * as v from 'valibot';
import { formats, type ValueFormat } from './values.ts';

/** In a format of `values.ts`. */
export function formatted<T>(format: ValueFormat<T>) {
  return v.pipe(
    v.string(format.expected),
    v.check((text) => format.parse(text) !== undefined, format.expected),
    v.metadata({ description: `Expected: ${format.expected}.` }),
    v.transform((text) => format.parse(text) as T),
  );
}

/** A URL kept as written. */
export function asWritten({ expected, parse }: ValueFormat<URL>) {
  return v.pipe(
    v.string(expected),
    v.check((text) => parse(text) !== undefined, expected),
  );
}

export function words<const Word extends string>(options: readonly Word[]) {
  return v.picklist(options, `one of ${options.join(', ')}`);
}

export function fraction(from: number, to: number) {
  const expected = `a number from ${from} to ${to}`;
  return v.pipe(v.number(expected), v.minValue(from, expected), v.maxValue(to, expected));
}

export function wholeNumber(from: number, to: number, expected = `a whole number from ${from} to ${to}`) {
  return v.pipe(
    v.number(expected),
    v.integer(expected),
    v.minValue(from, expected),
    v.maxValue(to, expected),
  );
}

/** Names become metric labels and log fields. */
const NAME = 'a name of 1 to 63 lower-case letters, digits and dashes';

const PREFIX = 'a path that starts with / and has no empty, "." or ".." segment, query or percent-encoding';

const HOST = 'a host name or address without port';

const PARAMETER_VALUE = 'a string or a list of strings';

/** A key of a Secret. */
const FILE_NAME = 'a file name in dir: letters, digits, dots, dashes and underscores';

export const field = {
  url: asWritten(formats.serverUrl),

  count: v.pipe(
    v.number('a whole number of at least 1'),
    v.integer('a whole number of at least 1'),
    v.minValue(1, 'a whole number of at least 1'),
  ),

  flag: v.boolean('true or false'),

  text: v.pipe(v.string('a string'), v.nonEmpty('a string that is not empty')),

  path: v.pipe(v.string('an absolute path'), v.startsWith('/', 'an absolute path')),

  name: v.pipe(v.string(NAME), v.regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, NAME)),

  pathPrefix: v.pipe(
    v.string(PREFIX),
    v.regex(/^\/(?:(?!\.{1,2}(?:\/|$))[A-Za-z0-9\-._~!$&'()*+,;=:@]+(?:\/|$))*$/, PREFIX),
  ),

  host: v.pipe(v.string(HOST), v.regex(/^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/, HOST)),

  parameterValue: v.union([v.string(PARAMETER_VALUE), v.array(v.string(PARAMETER_VALUE))], PARAMETER_VALUE),

  fileName: v.pipe(v.string(FILE_NAME), v.regex(/^(?!\.\.|\.$)[A-Za-z0-9._-]{1,253}$/, FILE_NAME)),
};
