import { stripVTControlCharacters } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { narrate } from '../../src/demo/narration.ts';

const LINE = {
  failed: {
    level: 'warn',
    msg: 'request not completed',
    error: 'token_unavailable',
    reason: 'no token is held',
  },
  others: { level: 'warn', msg: 'request not completed: more of these', failures: 34 },
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

it('breaks lines between words on a terminal of 80 columns, below the text', () => {
  const before = Object.getOwnPropertyDescriptor(process.stdout, 'columns');
  Object.defineProperty(process.stdout, 'columns', { value: 80, configurable: true });
  onTestFinished(() => {
    if (before === undefined) Reflect.deleteProperty(process.stdout, 'columns');
    else Object.defineProperty(process.stdout, 'columns', before);
  });
  const told: string[] = [];
  const { say, add } = narrate((line) => told.push(line));
  add(() => 'the app: 120 requests, 0 failed');
  say('Short.');
  say('word '.repeat(30).trim());
  const lines = told.map((line) => stripVTControlCharacters(line).split('\n'));
  expect(lines[0]).toEqual([expect.stringMatching(/^[\d:]{8} {2}Short\. {2}\(the app/)]);
  expect(lines[1]?.length).toBeGreaterThan(2);
  for (const line of lines[1] ?? []) expect(line.length).toBeLessThan(80);
  for (const line of lines[1]?.slice(1) ?? []) expect(line).toMatch(/^ {10}\S/);
});
