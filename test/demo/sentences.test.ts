import { expect, it } from 'vitest';
import { narrate, seconds } from '../../src/demo/narration.ts';

/** What is told of a line of the log. */
function told(msg: string, facts: object): string | undefined {
  const lines: string[] = [];
  narrate((line) => lines.push(line)).write(JSON.stringify({ level: 'info', msg, ...facts }));
  return lines[0];
}

it.each([
  [
    'token obtained',
    { reason: 'scheduled', durationMs: 12, lifetimeMs: 20_000, nextInMs: 14_200 },
    'The sidecar renewed the token ahead of its end, in 12 ms. It lives 20 s. The next is due in 14 s.',
  ],
  [
    'token obtained',
    { reason: 'of tomorrow', durationMs: 1500 },
    'The sidecar got a token (of tomorrow), in 1.5 s.',
  ],
  [
    'no token obtained',
    { result: 'unavailable', detail: 'ECONNREFUSED', heldTokenEndsInMs: 4000, nextInMs: 1000 },
    'The provider gave no token (ECONNREFUSED). The app is served with the token in hand, for 4.0 s yet; the sidecar asks again in 1.0 s.',
  ],
  [
    'no token obtained',
    { result: 'rejected', detail: 'invalid_client', heldTokenEndsInMs: 0 },
    'The provider rejected the client (invalid_client). No token is left: the app gets 503 until there is one.',
  ],
])('%s, as a sentence: %#', (text, facts, sentence) => {
  expect(told(text, facts)).toContain(sentence);
});

it('a line that nobody has foreseen is told as it is', () => {
  expect(told('toString', {})).toContain('  toString');
  expect(told('listener error', { port: 1 })).toContain('listener error: port 1');
});

it.each([
  [0, '0 ms'],
  [99, '99 ms'],
  [100, '0.1 s'],
  [9949, '9.9 s'],
  [9950, '10 s'],
  [60_000, '60 s'],
])('%d ms are %s', (ms, text) => {
  expect(seconds(ms)).toBe(text);
});
