import type { LookupAddress } from 'node:dns';

/** No more of a name's addresses are tried: the last one begins two seconds after the first. */
export const MAX_ADDRESSES = 8;

/**
 * The order in which the addresses of a name are tried (RFC 8305 §4): each once, the families in turn, the first one's
 * family first, and otherwise in the resolver's order.
 */
export function addressesInTurn(found: readonly LookupAddress[]): readonly LookupAddress[] {
  const distinct = found.filter(
    ({ address }, index) => found.findIndex((other) => other.address === address) === index,
  );
  const first = distinct.filter(({ family }) => family === distinct[0]?.family);
  const second = distinct.filter(({ family }) => family !== distinct[0]?.family);
  const longer = Math.max(first.length, second.length);
  return Array.from({ length: longer }, (_, index) => [first[index], second[index]])
    .flat()
    .filter((address) => address !== undefined)
    .slice(0, MAX_ADDRESSES);
}
