/** Providers that give one opaque token until its end: WSO2 API Manager, Spring's old server. */

import { describe, expect, it } from 'vitest';
import type { Authorization } from '../../src/token/bearer-source.ts';
import { settle } from '../support/manual-clock.ts';
import { volume } from '../support/volume.ts';
import { failure, openSource, token } from './opened-source.ts';

const INVALID = { result: 'invalid_response', detail: 'expires_in is 0' } as const;

/** A source whose provider gives tokens of `lifeSeconds`, each until its end. */
async function openCountdown(lifeSeconds: number, round: (seconds: number) => number) {
  const opened = await openSource();
  const { clock, grants, source } = opened;
  const tokens: { readonly text: string; readonly endsAtMs: number; grants: number }[] = [];
  let answered = 0;

  /** The provider answers what it was asked. */
  async function answer(): Promise<void> {
    for (const grant of grants.slice(answered)) {
      answered += 1;
      const nowMs = clock.monotonicMs();
      if (tokens.length === 0 || (tokens.at(-1)?.endsAtMs ?? 0) <= nowMs) {
        tokens.push({ text: `t${tokens.length + 1}`, endsAtMs: nowMs + lifeSeconds * 1000, grants: 0 });
      }
      const given = tokens.at(-1) as (typeof tokens)[number];
      given.grants += 1;
      const seconds = round((given.endsAtMs - nowMs) / 1000);
      const isUsable = seconds > 0 || grant.ending === given.text;
      await grant.answer(isUsable ? token(given.text, seconds * 1000) : INVALID);
    }
  }

  /** Whether a request finds a token, or gets one within seconds. */
  async function request(): Promise<Authorization> {
    const held = source.current();
    if (held !== undefined) return held;
    let outcome: Authorization | undefined;
    const waiting = source.obtain().then(
      (authorization) => {
        outcome = authorization;
      },
      (error: Error) => {
        outcome = error.message;
      },
    );
    for (let n = 0; n < 500 && outcome === undefined; n++) {
      await answer();
      if (outcome === undefined) await clock.advance(10);
    }
    await waiting;
    return outcome ?? 'still waiting';
  }

  await answer();
  return { ...opened, tokens, answer, request };
}

describe.each<[string, (seconds: number) => number]>([
  ['down', Math.floor],
  ['up', Math.ceil],
  ['to the nearest', Math.round],
])('seconds rounded %s', (_, round) => {
  it.each([3, 7, 60, 3600])(
    'of %i s: requests get a token at every moment, none is sent after its end, and the provider is asked a few times',
    async (lifeSeconds) => {
      const { clock, tokens, answer, request, lines, source } = await openCountdown(lifeSeconds, round);
      while (tokens.length < 4) {
        const authorization = await request();
        const given = tokens.find(({ text }) => authorization === `Bearer ${text}`);
        expect(given?.endsAtMs ?? authorization).toBeGreaterThan(clock.monotonicMs());
        const leftMs = (tokens.at(-1)?.endsAtMs ?? 0) - clock.monotonicMs();
        await clock.advance(leftMs > 100_000 ? volume(9700, 970) : leftMs > 10_000 ? 970 : 70);
        await answer();
      }
      for (const { grants } of tokens) expect(grants).toBeLessThanOrEqual(5 + Math.log2(lifeSeconds));
      expect(lines.join('\n')).not.toContain('no token obtained');
      expect(source.snapshot()).toMatchObject({ consecutiveFailures: 0, lastFailure: undefined });
    },
  );
});

it('a provider that replaces its token a while before the end is found out before it', async () => {
  const { clock, grants, last, source } = await openSource();
  await last().answer(token('a', 300_000));
  await clock.advance(225_000);
  await last().answer(token('a', 75_000));
  await clock.advance(56_250);
  expect(grants).toHaveLength(3);
  expect(source.current()).toBe('Bearer a');
  await last().answer(token('b', 300_000));
  expect(source.current()).toBe('Bearer b');
});

it('the endpoint is told of the held token around its end alone, so that 0 seconds are no answer at other times', async () => {
  const { clock, grants, last } = await openSource();
  await last().answer(token('a', 300_000));
  await clock.advance(225_000);
  expect(last().ending).toBeUndefined();
  for (let n = 0; n < 200 && last().ending === undefined; n++) {
    await last().answer(failure);
    await clock.advance(1000);
  }
  expect(last().ending).toBe('a');
  expect(clock.monotonicMs()).toBeGreaterThan(290_000);
  // The provider goes on and on about the same token.
  const before = grants.length;
  while (last().ending !== undefined) {
    await last().answer(token('a', 0));
    await clock.advance(1000);
  }
  expect(grants.length - before).toBeLessThan(12);
  await last().answer(INVALID);
  await settle();
  expect(last().ending).toBeUndefined();
});
