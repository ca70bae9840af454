import { expect } from 'vitest';
import { ERRORS, type ProxyErrorCode } from '../../src/platform/errors.ts';
import type { Answer } from './raw-client.ts';

/** Asserts that the answer is the sidecar's own, with this code, and whole (RFC 9457). */
export function expectProblem(answer: Answer, code: ProxyErrorCode): void {
  expect(answer.head.value('token-sidecar-error'), answer.head.startLine).toBe(code);
  expect(answer.status).toBe(ERRORS[code].status);
  expect(answer.head.value('content-type')).toBe('application/problem+json');
  expect(answer.head.value('cache-control')).toBe('no-store');
  expect(answer.head.value('content-length')).toBe(String(answer.body.length));
  expect(JSON.parse(answer.body)).toMatchObject({
    type: 'about:blank',
    title: ERRORS[code].title,
    status: ERRORS[code].status,
    detail: expect.any(String),
    code,
  });
}
