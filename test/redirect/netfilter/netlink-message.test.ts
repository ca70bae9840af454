import { describe, expect, it } from 'vitest';
import {
  attribute,
  batch,
  content,
  encodeMessage,
  errorNumber,
  NFT,
  native,
  nested,
  nftMessage,
  readAnswers,
  textIn,
} from '../../../src/redirect/netfilter/netlink-message.ts';
import { readAddress } from '../../../src/redirect/netfilter/original-destination.ts';
import {
  type AddressRange,
  installation,
  removal,
  toRange,
} from '../../../src/redirect/netfilter/redirection-table.ts';
import { meshOfChains, meshOfNames } from '../../../src/redirect/netfilter/service-mesh.ts';

/** What the kernel says: header, then the body. */
function answer(type: number, sequence: number, body: Buffer): Buffer {
  return Buffer.concat([
    native.number32(16 + body.length),
    native.number16(type),
    native.number16(0),
    native.number32(sequence),
    native.number32(0),
    body,
  ]);
}

describe('a message', () => {
  it('is as long as it says, with attributes filled up to four octets', () => {
    const octets = encodeMessage(
      nftMessage(NFT.newTable, 5, 1, 'a table', attribute(1, content.text('abcd'))),
      7,
    );
    expect(octets.length).toBe(16 + 4 + 12);
    expect(readAnswers(octets)).toMatchObject([{ type: 0xa00, sequence: 7 }]);
    expect(octets.subarray(20).toString('latin1')).toBe('\u0009\0\u0001\0abcd\0\0\0\0');
  });

  it('says of a batch whose it is', () => {
    const [begin, end] = batch([]).map((message) => encodeMessage(message, 1));
    expect([begin?.readUInt16BE(18), end?.readUInt16BE(18)]).toEqual([10, 10]);
  });

  it('names what the kernel may refuse', () => {
    const redirection = {
      port: 15_083,
      capturedPorts: [{ first: 80, last: 80 }],
      refusedUdpPorts: [],
      excludedPorts: [],
      excludedRanges: [],
      exemptUser: 65_532,
    };
    expect(installation(redirection).map(({ what }) => what)).toEqual([
      'a batch',
      'the table token-sidecar',
      'to delete the table token-sidecar',
      'the table token-sidecar',
      'the chain redirect',
      'rule 1 of the chain redirect',
      'rule 2 of the chain redirect',
      'rule 3 of the chain redirect',
      'rule 4 of the chain redirect',
      'the chain refuse',
      'rule 1 of the chain refuse',
      'rule 2 of the chain refuse',
      'rule 3 of the chain refuse',
      'the end of a batch',
    ]);
    expect(removal()).toHaveLength(4);
  });
});

describe('an answer', () => {
  it('may come with others', () => {
    const octets = Buffer.concat([answer(2, 1, native.number32(0)), answer(2, 2, native.number32(-1 >>> 0))]);
    expect(readAnswers(octets).map(({ sequence, body }) => [sequence, errorNumber(body)])).toEqual([
      [1, 0],
      [2, 1],
    ]);
  });

  it.each([3, 15, 20])('that is cut short to %i octets is refused', (length) => {
    expect(() => readAnswers(answer(2, 1, Buffer.alloc(20)).subarray(0, length))).toThrow(RangeError);
  });
});

describe('a service mesh', () => {
  const chain = (table: string, name: string) => ({
    body: Buffer.concat([
      Buffer.alloc(4),
      attribute(1, content.text(table)),
      nested(4, Buffer.alloc(8)),
      attribute(3, content.text(name)),
    ]),
  });

  it.each([
    ['nat', 'ISTIO_OUTPUT', 'Istio'],
    ['istio-proxy-nat', 'output', 'Istio'],
    ['nat', 'PROXY_INIT_OUTPUT', 'Linkerd'],
    ['nat', 'OUTPUT', undefined],
    ['token-sidecar', 'redirect', undefined],
  ])('is known by the table %s and the chain %s: %s', (table, name, mesh) => {
    expect(textIn(chain(table, name).body, 3)).toBe(name);
    expect(meshOfChains([chain('filter', 'INPUT'), chain(table, name)])).toBe(mesh);
    expect(meshOfNames([name, table])).toBe(mesh);
  });

  it('is not seen in what is not well formed', () => {
    expect(meshOfChains([{ body: Buffer.alloc(40) }, { body: Buffer.alloc(0) }])).toBeUndefined();
  });
});

describe('an original destination', () => {
  it('is an address of either family', () => {
    const ipv4 = Buffer.from('020001bb0a000102', 'hex');
    expect(readAddress(Buffer.concat([ipv4, Buffer.alloc(20)]), 4)).toEqual({ host: '10.0.1.2', port: 443 });
    const ipv6 = Buffer.from(`0a0001bb00000000fd99${'00'.repeat(13)}0100000000`, 'hex');
    expect(readAddress(ipv6, 6)).toEqual({ host: 'fd99::1', port: 443 });
  });
});

it.each<[AddressRange, string]>([
  [{ family: 4, address: Buffer.from([10, 1, 2, 3]), prefix: 8 }, '0a000000'],
  [{ family: 4, address: Buffer.from([10, 1, 2, 3]), prefix: 0 }, '00000000'],
  [{ family: 4, address: Buffer.from([10, 1, 255, 3]), prefix: 20 }, '0a01f000'],
])('a range is compared by its prefix: %#', (range, network) => {
  // The last attribute, filled up to nothing: what is compared.
  expect(toRange(range).subarray(-4).toString('hex')).toBe(network);
});

it('a long of C has the order of octets that this machine has', () => {
  expect(native.number64(5)).toEqual(Buffer.from(BigUint64Array.of(5n).buffer));
});
