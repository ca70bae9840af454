import { expect, it } from 'vitest';
import { flatString } from '../../../src/proxy/http/flat-string.ts';
import { traceContextOf } from '../../../src/proxy/http/messages.ts';
import { redactedPath } from '../../../src/proxy/http/syntax.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';

it.each([0, 1, 8191, 8192, 8193, 70_000])(
  'the flat copy of a string is the same text, of %i octets',
  (length) => {
    const text = Array.from({ length }, (_, at) => String.fromCharCode(at % 256)).join('');
    expect(flatString(text)).toBe(text);
  },
);

const CUT: [string, (head: string) => unknown][] = [
  ['a trace', (head) => traceContextOf(['traceparent', head.slice(0, 55)])],
  ['a path', (head) => redactedPath({ target: head.slice(55), targetForm: 'origin' })],
];

it.each(CUT)('%s that is kept holds no reference to the head it was cut from', async (_what, cut) => {
  const heads = 100;
  const bytes = 100_000;
  const kept: unknown[] = [];
  await collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let head = 0; head < heads; head++) {
    const id = (head + 1).toString(16).padStart(16, '0');
    kept.push(cut(Buffer.alloc(bytes, `00-${id}${id}-${id}-01/${'x'.repeat(100)}?`).toString('latin1')));
  }
  await collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan((heads * bytes) / 4);
  expect(kept).toHaveLength(heads);
  expect(kept[0]).toBeTruthy();
});
