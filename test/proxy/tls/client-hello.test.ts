import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_HELLO_BYTES, readClientHello } from '../../../src/proxy/tls/client-hello.ts';
import { helloOf } from './hello.ts';

const HELLO = await helloOf({ servername: 'API.example.com', ALPNProtocols: ['h2', 'http/1.1'] });
const READ = { kind: 'hello', serverName: 'api.example.com', protocols: ['h2', 'http/1.1'] };

/** The same message in records of at most so many octets. */
function inRecordsOf(most: number, hello: Buffer): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += most) {
    const piece = message.subarray(at, at + most);
    records.push(Buffer.from([22, 3, 1, piece.length >> 8, piece.length & 0xff]), piece);
  }
  return Buffer.concat(records);
}

describe('a ClientHello', () => {
  it('gives name and protocols', () => {
    expect(readClientHello(HELLO)).toEqual(READ);
  });

  it('of TLS 1.2 without extensions gives neither', async () => {
    const plain = await helloOf({ servername: '', maxVersion: 'TLSv1.2' });
    expect(readClientHello(plain)).toEqual({ kind: 'hello', serverName: undefined, protocols: undefined });
  });

  it('gives a name without its final dot', async () => {
    const absolute = await helloOf({ servername: 'API.example.com.' });
    expect(readClientHello(absolute)).toMatchObject({ serverName: 'api.example.com' });
  });

  it('may come in any pieces', () => {
    for (let length = 0; length < HELLO.length; length++) {
      expect(readClientHello(HELLO.subarray(0, length))).toEqual({ kind: 'partial' });
    }
    expect(readClientHello(Buffer.concat([HELLO, Buffer.from('more')]))).toEqual(READ);
  });

  it.each([1, 3, 4, 5, 100])('may be in records of %i octets', (most) => {
    expect(readClientHello(inRecordsOf(most, HELLO))).toEqual(READ);
  });

  it('is limited in size in any records', () => {
    const long = Buffer.from([1, 0, 0x40, 1]);
    expect(readClientHello(Buffer.concat([Buffer.from([22, 3, 1, 0, 4]), long]))).toMatchObject({
      kind: 'malformed',
      why: expect.stringContaining(String(MAX_HELLO_BYTES)),
    });
  });

  it('that is invalid is told apart from an incomplete one', () => {
    for (const octets of [
      Buffer.from('GET '),
      Buffer.from([22, 2]),
      Buffer.from([22, 3, 1, 0, 0]),
      Buffer.from([22, 3, 1, 0, 4, 2, 0, 0, 0]),
    ]) {
      expect(readClientHello(octets).kind).toBe('malformed');
    }
  });

  it.each([
    ['as long as they say', 4, 'hello'],
    ['shorter than they say', 8, 'malformed'],
  ])('with extensions that are %s', (_, said, kind) => {
    const body = [3, 3, ...Buffer.alloc(32), 0, 0, 2, 0x13, 0x01, 1, 0, 0, said, 0, 0x2b, 0, 0];
    const message = [1, 0, 0, body.length, ...body];
    expect(readClientHello(Buffer.from([22, 3, 1, 0, message.length, ...message])).kind).toBe(kind);
  });

  it('of random octets causes no exception', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 600 }), fc.nat(HELLO.length), (octets, at) => {
        expect(['hello', 'partial', 'malformed']).toContain(readClientHello(Buffer.from(octets)).kind);
        const bent = Buffer.from(HELLO);
        bent.set(octets.subarray(0, bent.length - Math.min(at, bent.length)), Math.min(at, bent.length));
        expect(['hello', 'partial', 'malformed']).toContain(readClientHello(bent).kind);
      }),
    );
  });
});
