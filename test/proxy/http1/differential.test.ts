import { describe, expect, test } from 'vitest';
import { volume } from '../../support/volume.ts';
import { disagreement, newTally, runCase } from './fuzz/differential.ts';
import { transcribeWithLlhttp } from './fuzz/llhttp.ts';
import { octets, type Transcript, transcribe } from './transcript.ts';

/** Some seconds' worth; `npm run fuzz` goes on for as long as it is told to. */
const CASES = volume(4000, 30_000);
const SEED = 20_261_121;

describe('the HTTP/1.1 codec compared with llhttp', () => {
  test('refuses whatever llhttp refuses and frames alike whatever both accept', () => {
    const tally = newTally();
    for (let caseNumber = 0; caseNumber < CASES; caseNumber++) runCase(SEED, caseNumber, tally);
    expect(tally.cases).toBe(CASES);
    // The comparison means little unless both accept much and both refuse much.
    expect(tally.messagesAlike).toBeGreaterThan(CASES / 5);
    expect(tally.bothRefused).toBeGreaterThan(CASES / 5);
    expect(tally.conversations).toBeGreaterThan(CASES / 100);
  });
});

describe('the comparison of HTTP/1.1 transcripts', () => {
  const fuzzed = {
    kind: 'request',
    requestMethod: 'GET',
    bytes: octets(
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nokGET /2 HTTP/1.1\r\nHost: a\r\n\r\n',
    ),
  } as const;
  const stream = { ...fuzzed, pieces: [fuzzed.bytes] };
  const theirs = transcribeWithLlhttp(stream);
  const ours = transcribe(stream);

  function withFirst(change: object): Transcript {
    return {
      ...ours,
      messages: ours.messages.map((message, index) => (index === 0 ? { ...message, ...change } : message)),
    };
  }

  test('accepts equal transcripts and a stricter codec', () => {
    expect(theirs.messages.map(({ start, body }) => [start, body])).toEqual([
      ['POST /', 'ok'],
      ['GET /2', ''],
    ]);
    expect(disagreement(fuzzed, ours, theirs)).toBeUndefined();
    expect(disagreement(fuzzed, { messages: [], end: 'refused' }, theirs)).toBeUndefined();
  });

  test.each([
    ['another target', withFirst({ start: 'POST /x' })],
    ['another version', withFirst({ minorVersion: 0 })],
    ['other fields', withFirst({ fields: ['Host', 'a'] })],
    ['another body', withFirst({ body: 'no' })],
    ['a shorter body', withFirst({ body: 'o' })],
    ['other trailers', withFirst({ trailers: ['X', 'y'] })],
    ['a body without end', { ...ours, messages: [{ ...ours.messages[0], complete: false }] } as Transcript],
    ['one message fewer', { ...ours, messages: ours.messages.slice(0, 1) }],
    ['one message more', { ...ours, messages: [...ours.messages, ...ours.messages] }],
  ])('finds %s', (_difference, changed) => {
    expect(disagreement(fuzzed, changed, theirs)).toBeDefined();
  });

  test('finds a codec that accepts, or waits for more of, what llhttp refuses', () => {
    expect(disagreement(fuzzed, ours, { messages: [], end: 'refused' })).toBeDefined();
    const nothing: Transcript = { messages: [], end: 'open' };
    expect(disagreement(fuzzed, nothing, { messages: [], end: 'refused' })).toBeDefined();
  });
});
