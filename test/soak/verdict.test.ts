import { describe, expect, it } from 'vitest';
import { Tally } from './tally.ts';
import { judge, type SoakFigures } from './verdict.ts';

const REQUESTS = 18_000;

/** A minute in which all went well. */
function stats(different: Partial<SoakFigures> = {}): SoakFigures {
  const tally = new Tally(() => undefined);
  tally.succeeded('GET, small', 1);
  return {
    loadMs: 60_000,
    endedEarly: false,
    tokenLifetimeMs: 8000,
    rate: 300,
    shortExchanges: REQUESTS,
    tally,
    grants: new Map([['scheduled success', 20]]),
    tokensSeen: 20,
    refusals: new Map(),
    rotationsAsked: 0,
    rotations: { begun: 0, delaysMs: [] },
    reloadsAsked: 0,
    reloads: { begun: 0, delaysMs: [] },
    openAtSidecar: 0,
    openAtApi: 0,
    memory: undefined,
    logLines: 100,
    logLeaks: 0,
    diedEarly: false,
    exit: { code: 0, signal: null },
    exitMs: 10,
    ...different,
  };
}

const unmet = (different: Partial<SoakFigures>): string[] =>
  judge(stats(different))
    .filter(({ passed }) => !passed)
    .map(({ name }) => name);

it('a run in which all went well passes', () => {
  expect(unmet({})).toEqual([]);
});

describe('the number of short exchanges', () => {
  it('may be short of the rate by half', () => {
    expect(unmet({ shortExchanges: REQUESTS * 0.5 })).toEqual([]);
    expect(unmet({ shortExchanges: REQUESTS * 0.5 - 1 })).toEqual(['short exchanges']);
  });

  it('grows with the rate and with the time', () => {
    expect(unmet({ rate: 700 })).toEqual(['short exchanges']);
    expect(unmet({ rate: 100, shortExchanges: 6000 })).toEqual([]);
    expect(unmet({ loadMs: 130_000, tokenLifetimeMs: 60_000 })).toEqual(['short exchanges']);
  });

  it('is by how long the load lasted where the run was stopped', () => {
    expect(unmet({ endedEarly: true, loadMs: 30_000, shortExchanges: REQUESTS / 2 })).toEqual([]);
    expect(unmet({ endedEarly: true, loadMs: 30_000, shortExchanges: 1 })).toEqual(['short exchanges']);
  });

  it('is told beside what was expected', () => {
    const criterion = judge(stats({ shortExchanges: 40 })).find(({ name }) => name === 'short exchanges');
    expect(criterion).toEqual({
      name: 'short exchanges',
      passed: false,
      figure: '40, at least 9000 expected (50 % of 300 a second)',
    });
  });
});
