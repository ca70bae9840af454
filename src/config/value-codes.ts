import type { ProblemCode } from '../platform/problem-codes.ts';
import {
  duration,
  listenAddress,
  recoveryTime,
  serverUrl,
  size,
  tokenEndpointUrl,
  upstream,
  type ValueFormat,
  windowSize,
} from './values.ts';

const CODES: readonly (readonly [ValueFormat<unknown>, ProblemCode])[] = [
  [duration, 'invalid_duration'],
  [recoveryTime, 'invalid_duration'],
  [size, 'invalid_size'],
  [windowSize, 'invalid_size'],
  [serverUrl, 'invalid_url'],
  [tokenEndpointUrl, 'invalid_url'],
  [upstream, 'invalid_url'],
  [listenAddress, 'invalid_address'],
];

const BY_EXPECTATION: ReadonlyMap<string, ProblemCode> = new Map(
  CODES.map(([{ expected }, code]) => [expected, code]),
);

/** The kind of problem if a value is not what was expected, as far as the format implies one. */
export function codeOfExpectation(expected: string): ProblemCode | undefined {
  return BY_EXPECTATION.get(expected) ?? (expected.startsWith('one of ') ? 'unknown_word' : undefined);
}
