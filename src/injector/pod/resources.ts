/** CPU and memory of the sidecar, from annotations or the operator's defaults. */

import type { Problem } from '../../platform/problems.ts';
import type { SidecarResources } from '../injection-defaults.ts';
import {
  CPU_LIMIT,
  CPU_REQUEST,
  MEMORY_LIMIT,
  MEMORY_REQUEST,
  type Quantity,
  quantity,
} from './annotations.ts';

type QuantityAnnotation = typeof CPU_REQUEST | typeof CPU_LIMIT | typeof MEMORY_REQUEST | typeof MEMORY_LIMIT;

export function resolveResources(
  read: (name: QuantityAnnotation) => Quantity | undefined,
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
