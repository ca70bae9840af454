import { expect, it } from 'vitest';
import { narrate } from '../../src/demo/narration.ts';

const LINE = {
  failed: {
    level: 'warn',
    msg: 'request not completed',
    error: 'token_unavailable',
    reason: 'no token is held',
  },
  others: { level: 'warn', msg: 'request not completed: more of the same were left out', leftOut: 34 },
  granted: { level: 'info', msg: 'token obtained', reason: 'retry', durationMs: 12 },
} as const;

it('tells a failure once while it goes on, and again after something has changed', () => {
  const told: string[] = [];
  const { write, say } = narrate((line) => told.push(line.replace(/^.*? {2}/, '')));
  const happen = (what: keyof typeof LINE) => write(JSON.stringify(LINE[what]));
  happen('failed');
  happen('failed');
  happen('others');
  happen('failed');
  happen('granted');
  happen('failed');
  say('You brought the provider up again.');
  happen('failed');
  const failure = expect.stringContaining('A request failed (token_unavailable): no token is held.');
  expect(told).toEqual([
    failure,
    expect.stringContaining('The sidecar tried again and got a token'),
    failure,
    expect.stringContaining('You brought the provider up again.'),
    failure,
  ]);
});
