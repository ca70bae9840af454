import { describe, expect, it } from 'vitest';
import { traceContextOf, traceparentOf } from '../../../src/proxy/http/messages.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

const parse = (...values: string[]) => traceContextOf(values.flatMap((value) => ['Traceparent', value]));

describe('traceparent', () => {
  it.each([
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    [`00-${TRACE}-${SPAN}-03`, true],
    ['of a later version', true, `cc-${TRACE}-${SPAN}-01-what-is-new`],
  ])('%s is understood', (text, sampled, value = text) => {
    expect(parse(value)).toEqual({ traceId: TRACE, spanId: SPAN, sampled });
  });

  it.each([
    ['none', []],
    ['two', [`00-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-01`]],
    ['nonsense', ['x']],
    ['upper case', [`00-${TRACE.toUpperCase()}-${SPAN}-01`]],
    ['a trace of zeros', [`00-${'0'.repeat(32)}-${SPAN}-01`]],
    ['a span of zeros', [`00-${TRACE}-${'0'.repeat(16)}-01`]],
    ['the version that there is not', [`ff-${TRACE}-${SPAN}-01`]],
    ['more than version 00 has', [`00-${TRACE}-${SPAN}-01-more`]],
    ['something before it', [` 00-${TRACE}-${SPAN}-01`]],
  ])('%s is ignored', (_, values) => {
    expect(parse(...values)).toBeUndefined();
  });

  it('is written as it was read', () => {
    for (const value of [`00-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-00`]) {
      const context = parse(value);
      expect(context && traceparentOf(context)).toBe(value);
    }
  });
});
