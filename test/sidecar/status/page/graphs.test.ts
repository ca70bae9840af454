import { expect, it } from 'vitest';
import { sparkline, timeline } from '../../../../src/sidecar/status/page/html.ts';

const pathOf = (text: string) => /<path d="([^"]*)"/.exec(text)?.[1];

it('a line goes from the lowest to the highest figure, and is broken where there is none', () => {
  expect(pathOf(sparkline([0, 10, 5], 'x').text)).toBe('M0 19L1 1L2 10');
  expect(pathOf(sparkline([1, null, 1, null], 'x').text)).toBe('M0 1h1M2 1h1');
  expect(pathOf(sparkline([0, 0], 'x').text)).toBe('M0 19L1 19');
  expect(pathOf(sparkline([], 'x').text)).toBe('');
});

it('it says in words what it shows', () => {
  expect(sparkline([1], '"2" < 3').text).toContain('role="img" aria-label="&quot;2&quot; &lt; 3"');
});

it('grants of two hours: a column a minute, higher where one failed', () => {
  const now = '2030-01-01T02:00:30.000Z';
  const { text } = timeline(
    [
      { at: '2030-01-01T00:00:00.000Z', succeeded: 1, failed: 0 },
      { at: '2030-01-01T00:01:00.000Z', succeeded: 2, failed: 0 },
      { at: '2030-01-01T02:00:00.000Z', succeeded: 1, failed: 3 },
    ],
    now,
  );
  // The first is two hours old, and no longer in it.
  expect(text).toContain('<path class="ok" d="M0 10h1v10h-1z"/>');
  expect(text).toContain('<path class="failing" d="M119 0h1v20h-1z"/>');
});
