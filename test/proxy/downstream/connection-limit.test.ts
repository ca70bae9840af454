import { describe, expect, it } from 'vitest';
import {
  connectionsInMemory,
  memoryLimit,
  mostConnections,
  processLimits,
} from '../../../src/proxy/downstream/connection-limit.ts';

const OF_TOKEN_ENDPOINT = 64;

const OF_ADMIN = 192;

const limits = (files: string) => `Limit  Soft Limit  Hard Limit  Units
Max processes             7823                 7823                 processes
Max open files            ${files}                 4096                 files
Max locked memory         8388608              8388608              bytes
`;

describe('the limit of open connections', () => {
  it.each([
    [undefined, limits('1024'), 320],
    [10, limits('1024'), 10],
    [1000, limits('1024'), 320],
    [undefined, limits('20'), 1],
    [undefined, limits('unlimited'), Number.POSITIVE_INFINITY],
    [7, undefined, 7],
    [undefined, undefined, Number.POSITIVE_INFINITY],
  ])('for %j configured and %j is %d', (configured, text, most) => {
    expect(mostConnections(configured, text)).toBe(most);
  });

  it('leaves descriptors for the other listeners and for the process itself', () => {
    const left = 1024 - 2 * mostConnections(undefined, limits('1024'));
    expect(left - OF_ADMIN - OF_TOKEN_ENDPOINT).toBeGreaterThanOrEqual(64);
  });

  it.each([
    [512 * 2 ** 20, 4096],
    [64 * 2 ** 20, 512],
    [1, 1],
    [0, Number.POSITIVE_INFINITY],
    [2 ** 64, Number.POSITIVE_INFINITY],
  ])('over TLS takes half of a memory limit of %d octets: %d', (constrained, most) => {
    expect(connectionsInMemory(memoryLimit(constrained, 16 * 2 ** 30))).toBe(most);
  });

  it('is derived from the limits of this process', () => {
    expect(mostConnections(undefined, processLimits())).toBeGreaterThan(1);
  });
});
