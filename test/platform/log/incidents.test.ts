import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { afterFailure, figuresOf, type Incident } from '../../../src/platform/log/incidents.ts';

const MINUTE = 60_000;

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);

interface Step {
  readonly waitMs: number;
  readonly cause: string;
}

const WINDOW_ENDS = [1, 5, 30, ...Array.from({ length: 250 }, (_, hour) => 60 * (hour + 1))];

/** Which of the failures get a line: ten causes in a window, whose end further causes bring within a minute. */
function toldPlainly(steps: readonly Step[]): readonly { readonly line: boolean; readonly atMs: number }[] {
  let atMs = 0;
  let endMs = 0;
  let causes = new Set<string>();
  return steps.map(({ waitMs, cause }, index) => {
    atMs = index === 0 ? 0 : atMs + waitMs;
    if (atMs >= endMs) {
      causes = new Set();
      endMs = (WINDOW_ENDS.find((minute) => minute * MINUTE > atMs) as number) * MINUTE;
    }
    const isNew = !causes.has(cause);
    const line = isNew && causes.size < 10;
    if (line) causes.add(cause);
    else if (isNew) endMs = Math.min(endMs, atMs + MINUTE);
    return { line, atMs };
  });
}

const step = fc.record({
  waitMs: fc.oneof(fc.nat(2000), fc.nat(3 * MINUTE), fc.constantFrom(0, MINUTE, 4 * MINUTE, 60 * MINUTE)),
  cause: fc.constantFrom('a', 'a', 'a', 'a', 'a', 'a', ...'bcdefghijkl'),
});

it('long sequences are told as by the plain version, and every failure is in a count', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 100, maxLength: 200 }), fc.nat(1e9), (steps, startMs) => {
      const plain = toldPlainly(steps);
      let incident: Incident | undefined;
      let quietly = 0;
      for (const [index, { cause }] of steps.entries()) {
        const { atMs, line } = plain[index] as (typeof plain)[number];
        incident = afterFailure(incident, cause, startMs + atMs);
        expect(incident.isTold).toBe(line);
        quietly = line ? 0 : quietly + 1;
        expect(incident).toMatchObject({ failures: index + 1, untold: quietly });
        const figures = index === 0 ? {} : { failures: index + 1, lastedMs: atMs };
        expect(figuresOf(incident)).toEqual(figures);
        expect(incident.causes.length).toBeLessThanOrEqual(10);
      }
    }),
    { numRuns: 200 },
  );
});

describe('a failure each second', () => {
  it('for a day has a line at first, after 1, 5 and 30 minutes, and each hour', () => {
    let incident: Incident | undefined;
    const minutes: number[] = [];
    for (let second = 0; second <= 86_400; second++) {
      incident = afterFailure(incident, 'ECONNREFUSED', second * 1000);
      if (incident.isTold) minutes.push(second / 60);
    }
    expect(minutes).toEqual([0, 1, 5, 30, ...Array.from({ length: 24 }, (_, hour) => (hour + 1) * 60)]);
  });

  it('each of another cause has ten lines in a window, and the next ten within a minute', () => {
    let incident: Incident | undefined;
    const seconds: number[] = [];
    for (let second = 0; second < 240; second++) {
      incident = afterFailure(incident, `at ${second}`, second * 1000);
      if (incident.isTold) seconds.push(second);
    }
    expect(seconds).toEqual([...range(0, 10), ...range(60, 70), ...range(130, 140), ...range(200, 210)]);
  });
});

it('what is told and did not fail is counted nowhere', () => {
  const failed = afterFailure(undefined, 'rejected', 0);
  const told = afterFailure(failed, 'previous credentials', 1000, 0);
  expect(told).toMatchObject({ failures: 1, untold: 0, isTold: true });
  expect(afterFailure(told, 'previous credentials', 2000, 0)).toMatchObject({
    failures: 1,
    untold: 0,
    isTold: false,
  });
});
