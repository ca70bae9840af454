/** When the certificate is looked at again, and what a successor must be. */

import { expect, it } from 'vitest';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import { planRotation } from '../../src/injector/certificate/self-managed-certificate.ts';
import { servingCertificateOf } from '../../src/injector/certificate/stored-certificates.ts';

const NOW_MS = Date.parse('2030-01-01T00:00:00Z');
const HOUR_MS = 3_600_000;
const POLICY = { lifetimeMs: 3 * HOUR_MS, propagationMs: 60_000, hosts: ['a.svc', 'b.svc'] };
const issue = async (nowMs: number, hosts = POLICY.hosts) => {
  const made = await issueCertificate({ hosts, nowMs, lifetimeMs: POLICY.lifetimeMs });
  return { ...servingCertificateOf(made), ca: made.ca };
};
const [first, second, narrow] = await Promise.all([
  issue(NOW_MS),
  issue(NOW_MS + 2 * HOUR_MS),
  issue(NOW_MS + 2 * HOUR_MS, ['a.svc']),
]);
const plan = (stored: Partial<Parameters<typeof planRotation>[0]>, afterMs: number) => {
  const { step, nextAtMs } = planRotation(
    { current: first, authorities: [first.ca], ...stored },
    POLICY,
    NOW_MS + afterMs,
  );
  return [step, nextAtMs - NOW_MS - afterMs];
};

it.each<[string, Parameters<typeof plan>, [string, number]]>([
  ['no CA', [{ authorities: [] }, 0], ['create', 0]],
  ['two thirds to come', [{}, 0], ['wait', 2 * HOUR_MS]],
  ['a millisecond to come', [{}, 2 * HOUR_MS - 1], ['wait', 1]],
  ['a third left', [{}, 2 * HOUR_MS], ['stage', 0]],
  ['a successor that nobody knows', [{ next: second }, 2 * HOUR_MS], ['wait', 60_000]],
  [
    'one that has just become known',
    [{ next: second, publishedAtMs: NOW_MS + 2 * HOUR_MS }, 2 * HOUR_MS],
    ['wait', 60_000],
  ],
  ['one that is known', [{ next: second, publishedAtMs: NOW_MS }, 2 * HOUR_MS], ['promote', 0]],
  ['one without a host', [{ next: narrow, publishedAtMs: NOW_MS }, 2 * HOUR_MS], ['stage', 0]],
  ['one without a host, long before', [{ next: narrow, publishedAtMs: NOW_MS }, 0], ['wait', 2 * HOUR_MS]],
  [
    'one that has ended',
    [{ current: second, next: first, publishedAtMs: NOW_MS }, 4 * HOUR_MS],
    ['stage', 0],
  ],
  ['too few hosts', [{ current: narrow }, HOUR_MS], ['stage', 0]],
  ['a beginning to come', [{ current: narrow }, HOUR_MS - 1], ['create', 0]],
  [
    'a successor whose beginning is to come',
    [{ next: second, publishedAtMs: NOW_MS }, HOUR_MS - 1],
    ['wait', HOUR_MS + 1],
  ],
  [
    'an old CA that has ended',
    [{ current: second, authorities: [second.ca, first.ca] }, 3 * HOUR_MS],
    ['prune', 0],
  ],
])('with %s', (_, asked, planned) => {
  expect(plan(...asked)).toEqual(planned);
});
