import { describe, expect, it } from 'vitest';
import { ERRORS, type ProxyErrorCode, SidecarError } from '../../../src/platform/errors.ts';
import { fieldValues } from '../../../src/proxy/http/fields.ts';
import {
  localReplyMessage as problemMessage,
  problemOf,
} from '../../../src/proxy/transaction/local-reply.ts';
import { TokenUnavailable } from '../../../src/token/bearer-source.ts';

const CODES = Object.keys(ERRORS).filter(
  (code) => 'status' in ERRORS[code as keyof typeof ERRORS],
) as ProxyErrorCode[];

describe('a problem document', () => {
  it.each(CODES)('for %s has status, field and body', (code) => {
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

  it('closes the connection only if the next request cannot be found or must not follow', () => {
    expect(CODES.filter((code) => problemOf(new SidecarError(code, 'why')).closes).sort()).toEqual([
      'bad_request',
      'draining',
      'headers_too_large',
      'request_timeout',
      'request_too_large',
      'uri_too_long',
    ]);
  });

  it('has Retry-After if the time is known', () => {
    const retryAfter = (error: SidecarError<ProxyErrorCode>) =>
      fieldValues(problemOf(error).fields, 'retry-after');
    expect(retryAfter(new TokenUnavailable('none', 2500))).toEqual(['3']);
    expect(retryAfter(new SidecarError('overloaded', 'x'))).toEqual(['1']);
    expect(retryAfter(new SidecarError('draining', 'x'))).toEqual([]);
  });

  it('has its length in bytes, whatever the detail', () => {
    const { body, fields } = problemOf(new SidecarError('bad_request', 'é "\n\u{1f511}'));
    expect(body).toMatch(/^[\x20-\x7e]*$/);
    expect(fieldValues(fields, 'content-length')).toEqual([String(Buffer.byteLength(body))]);
    expect(JSON.parse(body)).toMatchObject({ detail: 'é "\n\u{1f511}' });
  });

  it('is a complete message', () => {
    const problem = problemOf(new SidecarError('route_not_found', 'why'));
    const [head, body] = problemMessage(problem, 'GET', false).split('\r\n\r\n');
    expect(head?.split('\r\n')[0]).toBe('HTTP/1.1 404 Not Found');
    expect(head).not.toContain('connection');
    expect(body).toBe(problem.body);
  });

  it('that closes the connection has Connection: close', () => {
    const message = problemMessage(problemOf(new SidecarError('bad_request', 'why')), 'POST', true);
    expect(message).toContain('\r\nconnection: close\r\n\r\n{');
  });

  it('has no body for HEAD but its length', () => {
    const problem = problemOf(new SidecarError('route_not_found', 'why'));
    const message = problemMessage(problem, 'HEAD', false);
    expect(message.endsWith('\r\n\r\n')).toBe(true);
    expect(message).toContain(`content-length: ${problem.body.length}\r\n`);
  });

  it.each(CODES)('for %s has a reason phrase', (code) => {
    const message = problemMessage(problemOf(new SidecarError(code, 'why')), 'GET', true);
    expect(message).toMatch(/^HTTP\/1\.1 \d{3} [A-Z]/);
    expect(message).not.toContain('undefined');
  });
});
