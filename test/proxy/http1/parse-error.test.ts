import { describe, expect, test } from 'vitest';
import { ParseError, REFUSALS, type RefusalReason } from '../../../src/proxy/http1/parse-error.ts';

describe('a parse error', () => {
  test('of an answer is always the upstream’s fault', () => {
    for (const reason of Object.keys(REFUSALS) as RefusalReason[]) {
      expect(new ParseError('response', reason).code).toBe('upstream_protocol_error');
    }
  });

  test('of a request has the error code of its status', () => {
    const codes = new Map<string, RefusalReason[]>();
    for (const reason of Object.keys(REFUSALS) as RefusalReason[]) {
      const { code } = new ParseError('request', reason);
      codes.set(code, [...(codes.get(code) ?? []), reason]);
    }
    expect([...codes.keys()].sort()).toEqual(['bad_request', 'headers_too_large', 'uri_too_long']);
    expect(codes.get('uri_too_long')).toEqual(['target_too_long']);
    expect(codes.get('headers_too_large')).toEqual([
      'head_too_large',
      'too_many_fields',
      'trailers_too_large',
    ]);
  });

  test('names the violated rule', () => {
    const refused = new ParseError('request', 'bare_lf');
    expect(refused.reason).toBe('bare_lf');
    expect(refused.message).toBe('Malformed request: a LF is not preceded by CR');
  });
});
