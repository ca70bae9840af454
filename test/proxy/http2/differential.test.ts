import { describe, expect, test } from 'vitest';
import { volume } from '../../support/volume.ts';
import { frame } from './frames.ts';
import type { FuzzCase } from './fuzz/connection-grammar.ts';
import { disagreement, newTally, runCase } from './fuzz/differential.ts';
import { transcribeWithNghttp2 } from './fuzz/nghttp2.ts';
import { type Message, type Transcript, transcribe } from './fuzz/transcript.ts';

/** A second's worth; `npm run fuzz -- --protocol h2` goes on for as long as it is told to, with a second oracle. */
const CASES = volume(250, 400);
const SEED = 20_261_122;

describe('the HTTP/2 codec compared with nghttp2', () => {
  test('refuses whatever nghttp2 refuses and reads alike whatever both accept', async () => {
    const tally = newTally();
    for (let caseNumber = 0; caseNumber < CASES; caseNumber++)
      await runCase(SEED, caseNumber, tally, undefined);
    expect(tally.cases).toBe(CASES);
    // The comparison means little unless both accept much and both refuse much.
    expect(tally.messagesAlike).toBeGreaterThan(CASES / 8);
    expect(tally.bothRefused).toBeGreaterThan(CASES / 8);
    expect(tally.conversations).toBeGreaterThan(CASES / 50);
  });
});

describe('the comparison of HTTP/2 transcripts', () => {
  const head = '83 86 84 01 01 61';
  const given: FuzzCase = {
    sender: 'client',
    asked: [],
    odd: false,
    frames: [
      frame(4, 0, 0),
      frame(1, 4, 1, head),
      frame(0, 0, 1, Buffer.from('ok')),
      frame(1, 5, 1, '00 01 78 01 79'),
      frame(1, 5, 3, head),
      frame(6, 0, 0, Buffer.from('finished')),
    ],
  };
  const ours = transcribe(given, [Buffer.concat(given.frames)]);

  function withFirst(change: Partial<Message>): Transcript {
    const messages = new Map(ours.messages);
    messages.set(1, { ...(ours.messages.get(1) as Message), ...change });
    return { ...ours, messages };
  }

  test('accepts equal transcripts and a stricter codec', async () => {
    const theirs = await transcribeWithNghttp2(given);
    expect([...theirs.messages.keys()]).toEqual([1, 3]);
    expect(theirs.messages.get(1)).toMatchObject({ data: 'ok', trailers: '["x","y"]', ended: true });
    expect(disagreement(ours, { nghttp2: theirs, h2: theirs, go: theirs })).toBeUndefined();
    const strict: Transcript = { messages: new Map(), refused: new Map(), refusal: 'stream_idle' };
    expect(disagreement(strict, { nghttp2: theirs })).toBeUndefined();
  });

  test.each([
    ['another head', { heads: ['x'] }],
    ['another body', { data: 'no' }],
    ['other trailers', { trailers: undefined }],
    ['a message without its end', { ended: false }],
  ])('finds %s', (_difference, change) => {
    expect(disagreement(withFirst(change), { nghttp2: ours })).toBeDefined();
    expect(disagreement(ours, { nghttp2: withFirst(change) })).toBeDefined();
    expect(disagreement(ours, { nghttp2: ours, h2: withFirst(change) })).toBeDefined();
    expect(disagreement(ours, { nghttp2: ours, go: withFirst(change) })).toBeDefined();
  });

  test('finds a codec that accepts what nghttp2 or Go’s framer refuses, or reads an extra message', () => {
    const refusing: Transcript = { ...ours, refusal: 'Protocol error' };
    expect(disagreement(ours, { nghttp2: refusing })).toBeDefined();
    expect(disagreement(ours, { nghttp2: ours, go: refusing })).toBeDefined();
    expect(disagreement(ours, { nghttp2: { ...ours, refused: new Map([[1, 'code 1']]) } })).toBeDefined();
    expect(disagreement(ours, { nghttp2: { ...ours, messages: new Map() } })).toBeDefined();
  });
});
