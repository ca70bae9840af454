import { expect, it } from 'vitest';
import { credentialCondition, sentenceOf, whyNeverGranted } from '../../src/token/condition.ts';
import { settle } from '../support/manual-clock.ts';
import { CASES, CONFIG, NOW_MS } from './conditions.ts';
import { failure, loaded, openSource, rejection, token } from './opened-source.ts';

it.each(Object.entries(CASES))(
  'the condition of a credential, %s, has since, reason, advice and the effect on requests',
  (_, one) => {
    const condition = credentialCondition(CONFIG, one.token, NOW_MS);
    const { state, level, next, runbook } = condition;
    expect({ state, level, next, runbook, sentence: sentenceOf(condition, NOW_MS) }).toEqual({
      state: one.state,
      level: one.level,
      sentence: one.sentence,
      next: one.next,
      runbook: one.runbook,
    });
  },
);

it('a wrong Secret is one condition since its first refusal, whatever the previous one gets meanwhile', async () => {
  const { source, clock, change, grants, last } = await openSource();
  await last().answer(token('T1', 300_000));
  await clock.advance(60_000);
  change(loaded('wrong'));
  const rejectedAtMs = clock.now().wallMs;
  const said = new Set<string>();
  for (let step = 0; step < 200; step++) {
    await clock.advance(5000);
    const pending = grants.at(-1);
    await pending?.answer(pending.secret === 'one' ? token(`T${step}`, 300_000) : rejection);
    const { state, what, sinceMs, reason, next } = credentialCondition(
      CONFIG,
      source.snapshot(),
      clock.now().wallMs,
    );
    said.add(JSON.stringify({ state, what, sinceMs, reason, next }));
  }
  expect(grants.filter(({ secret }) => secret === 'one').length).toBeGreaterThan(2);
  expect([...said].map((one) => JSON.parse(one))).toEqual([
    expect.objectContaining({ state: 'secret_rejected', sinceMs: rejectedAtMs }),
  ]);
  change(loaded('right'));
  await settle();
  await last().answer(token('T'));
  expect(credentialCondition(CONFIG, source.snapshot(), clock.now().wallMs).state).toBe('ready');
});

it('the condition has the time of the provider’s last answer', async () => {
  const { source, clock, last } = await openSource();
  await last().answer(rejection);
  const answeredAtMs = clock.now().wallMs;
  await clock.advance(600_000);
  await last().answer(failure);
  expect(source.snapshot().lastAnswerAtMs).toBe(answeredAtMs);
});

it('a program that never had a token ends with the same sentence as its condition', () => {
  for (const { token: one, sentence } of Object.values(CASES)) {
    const ended = whyNeverGranted(CONFIG, one, NOW_MS);
    if (one.obtainedFirstToken) expect(ended).toBeUndefined();
    else expect(ended?.message).toBe(sentence);
  }
  expect(
    whyNeverGranted(CONFIG, { ...CASES['there is no Secret']?.token, required: false } as never, 0),
  ).toBe(undefined);
});
