import { describe, expect, it } from 'vitest';
import { type Repetition, summarize } from '../../bench/results.ts';

const MEMORY = { residentBytes: 2, anonymousBytes: 1 };
const REPETITION: Repetition = {
  requestsPerSecond: 1000,
  cpuUsPerRequest: 10,
  bytesPerSecond: 1,
  proxyCoreShare: 1,
  loadCoreShare: 1,
  loaded: MEMORY,
  failures: 0,
};
const DIRECT = { requestsPerSecond: 1, latencies: [{ p50Us: 100, p99Us: 150 }] };

const summaryOf = (...changes: readonly Partial<Repetition>[]) =>
  summarize({ idle: MEMORY, repetitions: changes.map((change) => ({ ...REPETITION, ...change })) }, DIRECT);

describe('the summary of repetitions', () => {
  it('takes the median of their cost, and all of their failures', () => {
    const summary = summaryOf(
      { cpuUsPerRequest: 1, failures: 2 },
      { cpuUsPerRequest: 9, failures: 1 },
      { cpuUsPerRequest: 5 },
    );
    expect(summary).toMatchObject({ cpuUsPerRequest: 5, failures: 3 });
  });

  it('takes the highest memory of all', () => {
    const loaded = { residentBytes: 200, anonymousBytes: 100 };
    expect(summaryOf({}, { loaded }, {}).loaded).toEqual(loaded);
  });

  it('takes the latency of those that have it', () => {
    const latency = (p99Us: number) => ({ latency: { p50Us: 300, p99Us, samples: 1000 } });
    const { addedP50Us, addedP99Us } = summaryOf(latency(450), {}, {}, latency(650), {}, {}, latency(550));
    expect([addedP50Us, addedP99Us]).toEqual([200, 400]);
  });

  it('has no latency where none was measured', () => {
    expect(summaryOf({}).addedP99Us).toBeNaN();
  });
});
