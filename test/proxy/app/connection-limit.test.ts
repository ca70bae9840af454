import { describe, expect, it } from 'vitest';
import { mostConnections, processLimits } from '../../../src/proxy/app/connection-limit.ts';

const limits = (files: string) => `Limit  Soft Limit  Hard Limit  Units
Max processes             7823                 7823                 processes
Max open files            ${files}                 4096                 files
Max locked memory         8388608              8388608              bytes
`;

describe('how many connections may be open', () => {
  it.each([
    [undefined, limits('1024'), 480],
    [10, limits('1024'), 10],
    [1000, limits('1024'), 480],
    [undefined, limits('20'), 1],
    [undefined, limits('unlimited'), Number.POSITIVE_INFINITY],
    [7, undefined, 7],
    [undefined, undefined, Number.POSITIVE_INFINITY],
  ])('%j configured, %j: %d', (configured, text, most) => {
    expect(mostConnections(configured, text)).toBe(most);
  });

  it('is read from this process', () => {
    expect(mostConnections(undefined, processLimits())).toBeGreaterThan(1);
  });
});
