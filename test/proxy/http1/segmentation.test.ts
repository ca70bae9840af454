import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { volume } from '../../support/volume.ts';
import { fuzzCase } from './fuzz/message-grammar.ts';
import { Random } from './fuzz/random.ts';
import { cutAt, LIMITS, octets, transcribe } from './transcript.ts';

const cuts = fc.array(fc.nat(600), { maxLength: 12 });

describe('any split of the octets of HTTP/1.1', () => {
  test('gives the same messages and errors, for valid and malformed streams', () => {
    fc.assert(
      fc.property(fc.nat(), cuts, (seed, where) => {
        const { bytes, ...stream } = fuzzCase(new Random(seed, 0));
        const whole = transcribe({ ...stream, pieces: [bytes] });
        expect(transcribe({ ...stream, pieces: cutAt(bytes, where) })).toEqual(whole);
        expect(transcribe({ ...stream, pieces: cutAt(bytes, [...bytes.keys()]) })).toEqual(whole);
      }),
      { numRuns: volume(200, 500) },
    );
  });

  test('gives the same errors at the limits', () => {
    const limits = fc.record({
      headerBytes: fc.integer({ min: 20, max: 120 }),
      headerCount: fc.nat(4),
      targetBytes: fc.nat(12),
    });
    fc.assert(
      fc.property(fc.nat(), limits, cuts, (seed, bounds, where) => {
        const { bytes, ...stream } = fuzzCase(new Random(seed, 1));
        const whole = transcribe({ ...stream, pieces: [bytes] }, bounds);
        expect(transcribe({ ...stream, pieces: cutAt(bytes, where) }, bounds)).toEqual(whole);
        expect(transcribe({ ...stream, pieces: cutAt(bytes, [...bytes.keys()]) }, bounds)).toEqual(whole);
      }),
      { numRuns: volume(200, 500) },
    );
  });

  test('of arbitrary content gives only messages or errors', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, answers) => {
        const kind = answers ? 'response' : 'request';
        const start = answers ? 'HTTP/1.1 200 OK\r\n' : 'GET / HTTP/1.1\r\nHost: a\r\n';
        for (const prefix of ['', start, `${start}Transfer-Encoding: chunked\r\n\r\n`]) {
          const whole = Buffer.concat([octets(prefix), bytes]);
          const transcript = transcribe({ kind, pieces: [whole] }, LIMITS);
          expect(transcribe({ kind, pieces: cutAt(whole, [...whole.keys()]) }, LIMITS)).toEqual(transcript);
        }
      }),
      { numRuns: volume(200, 500) },
    );
  });
});
