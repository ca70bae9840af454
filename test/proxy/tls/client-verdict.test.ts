import { describe, expect, it } from 'vitest';
import { failureOf, VERDICT_MS } from '../../../src/proxy/tls/handshake.ts';

const coded = (code: string): Error => Object.assign(new Error(code), { code });

describe('a TLS handshake that ended after the certificate was shown', () => {
  it.each([
    ['without a word', undefined],
    ['by a reset', coded('ECONNRESET')],
    ['by EPIPE', coded('EPIPE')],
  ])('%s is a rejection if it ended soon', (_, error) => {
    expect(failureOf(error, VERDICT_MS - 1)).toBe('client_rejected_certificate');
    expect(failureOf(error, VERDICT_MS)).toBe('client_tls_error');
  });

  it.each([
    'BAD_CERTIFICATE',
    'UNSUPPORTED_CERTIFICATE',
    'CERTIFICATE_REVOKED',
    'CERTIFICATE_EXPIRED',
    'CERTIFICATE_UNKNOWN',
    'UNKNOWN_CA',
    'ACCESS_DENIED',
  ])('by the alert %s is a rejection at any time', (alert) => {
    for (const version of ['SSLV3', 'TLSV1']) {
      const error = coded(`ERR_SSL_${version}_ALERT_${alert}`);
      expect(failureOf(error, 10 * VERDICT_MS)).toBe('client_rejected_certificate');
    }
  });

  it.each([
    'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'ERR_SSL_ALERT_UNKNOWN_CA_2',
  ])('by %s is another failure', (code) => {
    expect(failureOf(coded(code), 0)).toBe('client_tls_error');
  });
});
