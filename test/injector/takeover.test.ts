import { describe, expect, it } from 'vitest';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import { takeoverDelayMs } from '../../src/injector/certificate/self-managed-certificate.ts';
import {
  servingCertificateOf,
  trackTrustedAuthorities,
} from '../../src/injector/certificate/stored-certificates.ts';
import { ManualClock } from '../support/manual-clock.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = Date.parse('2030-01-01T00:00:00Z');
const issue = (nowMs = NOW_MS) => issueCertificate({ hosts: ['hook'], nowMs, lifetimeMs: HOUR_MS });
const [old, young, ended] = await Promise.all([issue(), issue(), issue(NOW_MS - 2 * HOUR_MS)]);
const serving = servingCertificateOf;

const trusting = (...authorities: string[]) => ({
  metadata: {},
  webhooks: [{ name: 'a', clientConfig: { caBundle: Buffer.from(authorities.join('')).toString('base64') } }],
});

function start(...names: string[]) {
  const clock = new ManualClock();
  const trusted = trackTrustedAuthorities(names.length === 0 ? ['w'] : names, clock);
  const delay = (current: Parameters<typeof takeoverDelayMs>[0], offered = serving(young)): number =>
    takeoverDelayMs(current, offered, { trusted, propagationMs: 60_000, nowMs: clock.now().wallMs });
  return { clock, trusted, delay };
}

describe('while the certificate in use is trusted', () => {
  it('its successor waits until it has been trusted for long enough, whatever other clocks say', async () => {
    const { clock, trusted, delay } = start();
    trusted.saw('w', trusting(old.ca));
    expect(delay(serving(old))).toBe(Number.POSITIVE_INFINITY);
    await clock.advance(HOUR_MS / 2);
    trusted.saw('w', trusting(old.ca, young.ca));
    expect(delay(serving(old))).toBe(60_000);
    await clock.advance(45_000);
    trusted.saw('w', trusting(young.ca, old.ca));
    expect(delay(serving(old))).toBe(15_000);
    await clock.advance(15_000);
    expect(delay(serving(old))).toBe(0);
  });

  it('every webhook has to trust it', async () => {
    const { clock, trusted, delay } = start('w', 'v');
    trusted.saw('w', trusting(old.ca, young.ca));
    expect(delay(serving(old))).toBe(Number.POSITIVE_INFINITY);
    trusted.saw('v', trusting(old.ca));
    expect(delay(serving(old))).toBe(Number.POSITIVE_INFINITY);
    trusted.saw('v', trusting(old.ca, young.ca));
    await clock.advance(60_000);
    expect(delay(serving(old))).toBe(0);
    trusted.saw('v', undefined);
    expect(delay(serving(old))).toBe(0);
  });
});

it('a trusted one replaces an untrusted or expired one at once', () => {
  const { trusted, delay } = start();
  trusted.saw('w', trusting(young.ca));
  expect(delay(serving(old))).toBe(0);
  trusted.saw('w', trusting(young.ca, ended.ca));
  expect(delay(serving(ended))).toBe(0);
});

it('the first one is shown once it is trusted', () => {
  const { trusted, delay } = start();
  expect(delay(undefined)).toBe(0);
  trusted.saw('w', trusting());
  expect(delay(undefined)).toBe(Number.POSITIVE_INFINITY);
  trusted.saw('w', trusting(young.ca));
  expect(delay(undefined)).toBe(0);
});

it('the one in use need not wait', () => {
  const { delay } = start();
  expect(delay(serving(young))).toBe(0);
});
