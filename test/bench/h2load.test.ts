import { describe, expect, it } from 'vitest';
import { readFigures } from '../../bench/h2load.ts';

const SUMMARY = `
finished in 3.00s, 30000.67 req/s, 5.21MB/s
requests: 90002 total, 90034 started, 90002 done, 89990 succeeded, 12 failed, 5 errored, 1 timeout
status codes: 89990 2xx, 0 3xx, 4 4xx, 3 5xx
traffic: 15.62MB (16380730) total, 1.20MB (1260028) headers (space savings 95.00%), 9.01MB (9450210) data
                     min         max         mean         sd        +/- sd
`;

describe('the figures of h2load', () => {
  it('are read from its summary, each failure once', () => {
    expect(readFigures(SUMMARY, 3)).toEqual({
      requests: 90_002,
      durationUs: 3e6,
      bytes: 16_380_730,
      refused: 7,
      failed: 5,
    });
  });

  it('are missing where it prints something else', () => {
    expect(() => readFigures('connect: refused', 3)).toThrow('h2load printed no figures: connect: refused');
  });
});
