import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import { planRotation } from '../../src/injector/certificate/self-managed-certificate.ts';
import {
  readStoredCertificates,
  type StoredCertificates,
  servingCertificateOf,
  writeStoredCertificates,
} from '../../src/injector/certificate/stored-certificates.ts';

const DAY_MS = 86_400_000;
const START_MS = Date.parse('2030-01-01T00:00:00Z');
const POLICY = { lifetimeMs: 90 * DAY_MS, propagationMs: 60_000, hosts: ['injector.system.svc'] };

async function issued(nowMs = START_MS, hosts = POLICY.hosts) {
  const made = await issueCertificate({ hosts, nowMs, lifetimeMs: POLICY.lifetimeMs });
  return { ...made, serving: servingCertificateOf(made) };
}
const first = await issued();
const second = await issued(START_MS + 61 * DAY_MS);
const fresh: StoredCertificates = { current: first.serving, authorities: [first.ca] };
const staged: StoredCertificates = {
  current: first.serving,
  next: second.serving,
  authorities: [second.ca, first.ca],
};

describe('an issued certificate', () => {
  const leaf = new X509Certificate(first.cert);
  const authority = new X509Certificate(first.ca);

  it('is signed by its CA, for its hosts, and may serve', () => {
    expect(leaf.verify(authority.publicKey)).toBe(true);
    expect(leaf.checkIssued(authority)).toBe(true);
    expect(leaf.checkHost('injector.system.svc')).toBe('injector.system.svc');
    expect(leaf.checkHost('elsewhere.svc')).toBeUndefined();
    expect([leaf.ca, authority.ca]).toEqual([false, true]);
    expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
  });

  it('has a positive serial number, which newer verifiers insist on', () => {
    for (const { serialNumber } of [leaf, authority]) expect(serialNumber).toMatch(/^[4-7][0-9A-F]{39}$/);
  });

  it('is valid already for who is an hour behind, and for as long as was asked', () => {
    for (const { validFromDate, validToDate } of [leaf, authority]) {
      expect(validFromDate.getTime()).toBe(START_MS - 3_600_000);
      expect(validToDate.getTime()).toBe(START_MS + POLICY.lifetimeMs);
    }
  });

  it('has a CA of its own, told apart by name', () => {
    expect(new X509Certificate(second.ca).subject).not.toBe(authority.subject);
  });
});

describe('the next step', () => {
  const cases: Readonly<Record<string, readonly [StoredCertificates | undefined, number, string]>> = {
    'nothing is stored': [undefined, 0, 'create'],
    'the certificate is young': [fresh, 30 * DAY_MS, 'wait'],
    'two thirds of its life are over': [fresh, 60 * DAY_MS, 'stage'],
    'it was made by a clock that was a year ahead': [fresh, -365 * DAY_MS, 'create'],
    'it was made by a clock that was a little more ahead than it is backdated': [fresh, -3_600_001, 'create'],
    'it was made by a clock that was as much ahead as it is backdated': [fresh, -3_600_000, 'wait'],
    'its successor was made by a clock that was ahead': [
      { ...staged, publishedAtMs: START_MS },
      60 * DAY_MS,
      'stage',
    ],
    'its successor is of a clock that was ahead, and nothing is due': [
      { ...staged, publishedAtMs: START_MS },
      59 * DAY_MS,
      'wait',
    ],
    'it has ended': [fresh, 90 * DAY_MS, 'create'],
    'its successor is not known to the webhooks': [staged, 61 * DAY_MS, 'wait'],
    'its successor has just become known': [
      { ...staged, publishedAtMs: START_MS + 61 * DAY_MS },
      61 * DAY_MS + 59_999,
      'wait',
    ],
    'its successor has been known for long enough': [
      { ...staged, publishedAtMs: START_MS + 61 * DAY_MS },
      61 * DAY_MS + 60_000,
      'promote',
    ],
    'the old CA has not ended': [
      { current: second.serving, authorities: [second.ca, first.ca] },
      89 * DAY_MS,
      'wait',
    ],
    'the old CA has ended': [
      { current: second.serving, authorities: [second.ca, first.ca] },
      90 * DAY_MS,
      'prune',
    ],
  };
  it.each(Object.entries(cases))('when %s', (_, [stored, afterMs, step]) => {
    expect(planRotation(stored, POLICY, START_MS + afterMs).step).toBe(step);
  });

  it('when the Service has another name', () => {
    expect(planRotation(fresh, { ...POLICY, hosts: ['other.system.svc'] }, START_MS).step).toBe('stage');
  });

  it('is awaited until it is due', () => {
    expect(planRotation(fresh, POLICY, START_MS).nextAtMs).toBe(START_MS + 60 * DAY_MS);
  });
});

describe('the Secret', () => {
  it('holds what was stored, and what else it had', () => {
    const secret = {
      metadata: { name: 'certificates', annotations: { team: 'x' } },
      type: 'kubernetes.io/tls',
    };
    const stored = { ...staged, publishedAtMs: START_MS };
    const written = writeStoredCertificates(secret, stored);

    expect(readStoredCertificates(written)).toEqual(stored);
    expect(written).toMatchObject({ type: 'kubernetes.io/tls', metadata: { annotations: { team: 'x' } } });
    expect(readStoredCertificates(writeStoredCertificates(written, fresh))).toEqual(fresh);
  });

  it('that holds anything else is as good as empty', () => {
    const data = { 'tls.crt': Buffer.from(first.cert).toString('base64'), 'tls.key': 'AAAA' };
    expect(readStoredCertificates({ metadata: {}, data })).toBeUndefined();
    expect(readStoredCertificates(undefined)).toBeUndefined();
  });
});
