import { expect, it } from 'vitest';
import { reusableForMs } from '../../../src/proxy/upstream/keep-alive.ts';

it.each([
  ['nothing', [], 55_000],
  ['a short time', ['Keep-Alive', 'timeout=5'], 4_000],
  ['a short time, with a maximum', ['keep-alive', 'timeout=5, max=100'], 4_000],
  ['a short time, last', ['keep-alive', 'max=100, timeout=5'], 4_000],
  ['a long time', ['Keep-Alive', 'timeout=600'], 55_000],
  ['a second', ['Keep-Alive', 'timeout=1'], 500],
  ['no time at all', ['Keep-Alive', 'timeout=0'], 0],
  ['something else', ['Keep-Alive', 'max=5'], 55_000],
  ['nonsense', ['Keep-Alive', 'timeout=soon, xtimeout=5'], 55_000],
])('a connection whose answer says %s', (_, fields, ms) => {
  expect(reusableForMs(fields)).toBe(ms);
});
