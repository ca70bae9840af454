import { expect } from 'vitest';
import { ERRORS, type ProxyErrorCode } from '../../../src/platform/errors.ts';
import type { Http2Answer } from './raw-http2-client.ts';

/** Asserts that the answer is the sidecar's own, with this code, and says nothing of a connection (RFC 9457). */
export function expectHttp2Problem({ head, status, body, ended }: Http2Answer, code: ProxyErrorCode): void {
  expect(head?.value('token-sidecar-error'), JSON.stringify(head)).toBe(code);
  expect(ended).toBe(true);
  expect(status).toBe(ERRORS[code].status);
  expect(head?.value('content-type')).toBe('application/problem+json');
  expect(head?.value('content-length')).toBe(String(body.length));
  expect(head?.value('connection')).toBeUndefined();
  expect(JSON.parse(body)).toMatchObject({ title: ERRORS[code].title, status: ERRORS[code].status, code });
}
