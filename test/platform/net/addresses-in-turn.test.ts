import { expect, it } from 'vitest';
import { addressesInTurn } from '../../../src/platform/net/connect.ts';

const MAX_ADDRESSES = 8;

const of = (addresses: readonly string[]) =>
  addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

it.each([
  ['one family, in its order', ['192.0.2.1', '192.0.2.2'], ['192.0.2.1', '192.0.2.2']],
  [
    'the families in turn, the first one first',
    ['2001:db8::1', '2001:db8::2', '2001:db8::3', '192.0.2.1', '192.0.2.2'],
    ['2001:db8::1', '192.0.2.1', '2001:db8::2', '192.0.2.2', '2001:db8::3'],
  ],
  [
    'those of the longer family at the end',
    ['192.0.2.1', '2001:db8::1', '2001:db8::2'],
    ['192.0.2.1', '2001:db8::1', '2001:db8::2'],
  ],
  ['each once', ['192.0.2.1', '192.0.2.1', '192.0.2.2'], ['192.0.2.1', '192.0.2.2']],
  ['none', [], []],
])('the addresses of a name are tried: %s', (_, found, tried) => {
  expect(addressesInTurn(of(found))).toEqual(of(tried));
});

it('only a few addresses are tried, of both families', () => {
  const four = Array.from({ length: 100 }, (_, index) => `192.0.2.${index}`);
  const tried = addressesInTurn(of([...four, '2001:db8::1']));
  expect(tried).toHaveLength(MAX_ADDRESSES);
  expect(tried[1]).toEqual({ address: '2001:db8::1', family: 6 });
});
