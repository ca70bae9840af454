import { describe, expect, it } from 'vitest';
import { ERRORS, type ProxyErrorCode, SidecarError } from '../../src/errors.ts';
import { fieldValues } from '../../src/proxy/header-rules.ts';
import { problemMessage, problemOf } from '../../src/proxy/problem.ts';
import { TokenUnavailable } from '../../src/token/token-unavailable.ts';

const CODES = Object.keys(ERRORS).filter(
  (code) => 'status' in ERRORS[code as keyof typeof ERRORS],
) as ProxyErrorCode[];

describe('a problem', () => {
  it.each(CODES)('%s is told in status, field and body', (code) => {
    const problem = problemOf(new SidecarError(code, 'why'));
    expect(problem.status).toBe(ERRORS[code].status);
    expect(fieldValues(problem.fields, 'token-sidecar-error')).toEqual([code]);
    expect(fieldValues(problem.fields, 'content-type')).toEqual(['application/problem+json']);
    expect(fieldValues(problem.fields, 'cache-control')).toEqual(['no-store']);
    expect(JSON.parse(problem.body)).toEqual({
      type: 'about:blank',
      title: ERRORS[code].title,
      status: ERRORS[code].status,
      detail: 'why',
      code,
    });
  });

  it('says when to come back, where that is known', () => {
    const retryAfter = (error: SidecarError<ProxyErrorCode>) =>
      fieldValues(problemOf(error).fields, 'retry-after');
    expect(retryAfter(new TokenUnavailable('none', 2500))).toEqual(['3']);
    expect(retryAfter(new SidecarError('overloaded', 'x'))).toEqual(['1']);
    expect(retryAfter(new SidecarError('draining', 'x'))).toEqual([]);
  });

  it('has a length in bytes, whatever the detail holds', () => {
    const { body, fields } = problemOf(new SidecarError('bad_request', 'é "\n\u{1f511}'));
    expect(body).toMatch(/^[\x20-\x7e]*$/);
    expect(fieldValues(fields, 'content-length')).toEqual([String(Buffer.byteLength(body))]);
    expect(JSON.parse(body)).toMatchObject({ detail: 'é "\n\u{1f511}' });
  });

  it('as a whole message closes the connection', () => {
    const problem = problemOf(new SidecarError('bad_request', 'why'));
    const [head, body] = problemMessage(problem, 'Bad Request').split('\r\n\r\n');
    expect(head?.split('\r\n')[0]).toBe('HTTP/1.1 400 Bad Request');
    expect(head?.split('\r\n').at(-1)).toBe('connection: close');
    expect(body).toBe(problem.body);
  });
});
