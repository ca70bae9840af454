import { describe, expect, it } from 'vitest';
import { type Repetition, summarize } from '../../bench/results.ts';

const MEMORY = { residentBytes: 2, anonymousBytes: 1 };

function repetition(cpuUsPerRequest: number, fixedWorkMs?: number): Repetition {
  return {
    requestsPerSecond: 1000,
    cpuUsPerRequest,
    bytesPerSecond: 1,
    proxyCoreShare: 1,
    loadCoreShare: 1,
    loaded: MEMORY,
    failures: 1,
    ...(fixedWorkMs === undefined ? {} : { fixedWorkMs }),
  };
}

function summaryOf(repetitions: readonly Repetition[]) {
  return summarize({ idle: MEMORY, repetitions }, { requestsPerSecond: 1, latencies: [] });
}

describe('the summary of repetitions', () => {
  it('is the median of the third beside which the fixed work took least, whatever the proxy did', () => {
    const noisy = [10, 20, 30, 40, 50, 60].map((cpuUs) => repetition(cpuUs, 23));
    const quiet = [repetition(99, 11), repetition(70, 10), repetition(80, 12)];
    const { cpuUsPerRequest, failures } = summaryOf([...noisy, ...quiet]);
    expect(cpuUsPerRequest).toBe(80);
    expect(failures).toBe(9);
  });

  it('takes no fewer than three', () => {
    const { cpuUsPerRequest } = summaryOf([repetition(1, 10), repetition(9, 20), repetition(5, 30)]);
    expect(cpuUsPerRequest).toBe(5);
  });

  it('takes every repetition of a result of before the work was timed', () => {
    expect(summaryOf([repetition(1), repetition(9), repetition(5)]).cpuUsPerRequest).toBe(5);
  });
});
