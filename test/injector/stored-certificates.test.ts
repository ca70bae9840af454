/** What the Secret that the replicas share looks like to who reads it with other tools. */

import { expect, it } from 'vitest';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import {
  type CertificateSecret,
  readStoredCertificates,
  servingCertificateOf,
  writeStoredCertificates,
} from '../../src/injector/certificate/stored-certificates.ts';

const NOW_MS = Date.parse('2030-01-01T00:00:00Z');
const PUBLISHED = 'token-sidecar.dev/next-published-at';
const ROTATE = 'token-sidecar.dev/rotate';
const EMPTY: CertificateSecret = {
  type: 'kubernetes.io/tls',
  metadata: { name: 'injector', resourceVersion: '1', annotations: { [ROTATE]: 'now', owner: 'us' } },
};

const made = await issueCertificate({ hosts: ['a.svc'], nowMs: NOW_MS, lifetimeMs: 3_600_000 });
const current = servingCertificateOf(made);

it('has the names that the documentation says', () => {
  const secret = writeStoredCertificates(EMPTY, {
    current,
    next: current,
    publishedAtMs: NOW_MS,
    authorities: [made.ca],
  });
  expect(Object.keys(secret.data ?? {})).toEqual(['tls.crt', 'tls.key', 'ca.crt', 'next.crt', 'next.key']);
  expect(secret.metadata.annotations).toEqual({ owner: 'us', [PUBLISHED]: '2030-01-01T00:00:00.000Z' });
  const read = readStoredCertificates(secret);
  expect(read).toMatchObject({ publishedAtMs: NOW_MS, next: { cert: current.cert } });
  expect(read).not.toHaveProperty('isRotationAsked');
});

it('is asked by its annotation to replace the certificate', () => {
  const { data = {} } = writeStoredCertificates(EMPTY, { current, authorities: [made.ca] });
  const asked = { ...EMPTY, data };
  expect(readStoredCertificates(asked)).toMatchObject({ isRotationAsked: true });
  expect(readStoredCertificates(asked)).not.toHaveProperty('publishedAtMs');
});
