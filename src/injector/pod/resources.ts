/** CPU and memory of the sidecar, from annotations or the operator's defaults. */

import type { ValueFormat } from '../../config/values.ts';
import type { Problem } from '../../platform/problems.ts';
import { type Annotation, CPU_LIMIT, CPU_REQUEST, MEMORY_LIMIT, MEMORY_REQUEST } from './annotations.ts';
import type { SidecarResources } from './injection-defaults.ts';

export function resolveResources(
  read: (name: Annotation) => Quantity | undefined,
  defaults: SidecarResources,
  problems: Problem[],
): SidecarResources {
  const pairs = [
    ['cpu', CPU_REQUEST, CPU_LIMIT],
    ['memory', MEMORY_REQUEST, MEMORY_LIMIT],
  ] as const;
  const resources: Record<string, string> = {};
  for (const [resource, requestName, limitName] of pairs) {
    const givenRequest = read(requestName);
    const givenLimit = read(limitName);
    let request = givenRequest ?? parsed(defaults[`${resource}Request`]);
    let limit = givenLimit ?? parsed(defaults[`${resource}Limit`]);
    if (request !== undefined && limit !== undefined && request.amount > limit.amount) {
      if (givenRequest !== undefined && givenLimit !== undefined) {
        const expected = `at most the limit, ${limit.text}`;
        problems.push({ key: requestName, value: request.text, expected });
      } else if (givenRequest === undefined) {
        request = limit;
      } else {
        limit = request;
      }
    }
    if (request !== undefined) resources[`${resource}Request`] = request.text;
    if (limit !== undefined) resources[`${resource}Limit`] = limit.text;
  }
  return resources;
}

function parsed(text: string | undefined): Quantity | undefined {
  return text === undefined ? undefined : quantity.parse(text);
}

const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

interface Quantity {
  readonly text: string;
  /** In cores or bytes. */
  readonly amount: number;
}

/** A Kubernetes quantity such as `10m`, `0.5`, `64Mi`, or `1e+08`, Helm's notation for large numbers. Not negative. */
export const quantity: ValueFormat<Quantity> = {
  expected: 'a quantity such as 10m, 0.5 or 64Mi',
  parse(text) {
    const [, number, suffix = '', exponent = ''] =
      /^(\d{1,15}(?:\.\d{1,20})?)(?:([numkMGTPE]|[KMGTPE]i)|([eE][+-]?\d{1,3}))?$/.exec(text) ?? [];
    if (number === undefined) return undefined;
    return { text, amount: Number(number + exponent) * (SUFFIXES[suffix] as number) };
  },
};
