/** Whatever takes the place of the certificate's files, the last good one stays, and the next good one is taken. */

import { expect, it } from 'vitest';
import { issueCertificate } from '../../../src/injector/certificate/certificate-authority.ts';
import { createInjectorMetrics } from '../../../src/injector/metrics.ts';
import { Registry } from '../../../src/platform/prometheus.ts';
import {
  createServedCertificate,
  parseServingCertificate,
} from '../../../src/platform/tls/serving-certificate.ts';
import { ASKING } from '../../injector/defaults.ts';
import { reviewOf } from '../../injector/review.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { apiServer, HOST, mountCertificate, runInjector } from './running-injector.ts';

const REVIEW = reviewOf({ metadata: { annotations: ASKING }, spec: { containers: [{ name: 'app' }] } });
const HOUR_MS = 3_600_000;

const issue = (nowMs = Date.now()) => issueCertificate({ hosts: [HOST], nowMs, lifetimeMs: HOUR_MS });
const [good, other, ended, future] = await Promise.all([
  issue(),
  issue(),
  issue(Date.now() - 2 * HOUR_MS),
  // Certificates are backdated by an hour.
  issue(Date.now() + 2 * HOUR_MS),
]);
const halfOf = (pem: string): string => pem.slice(0, pem.length / 2);
const garbled = other.ca.replace(/\n[A-Za-z0-9+/]{8}/, '\nAAAAAAAA');

const broken: Readonly<Record<string, readonly [cert: string, key: string]>> = {
  'a certificate that is cut off': [halfOf(other.cert), other.key],
  'a chain that is cut off': [other.cert + halfOf(other.ca), other.key],
  'a chain that is garbled': [other.cert + garbled, other.key],
  'a chain that is empty of a certificate': [
    `${other.cert}-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n`,
    other.key,
  ],
  'a chain of another certificate': [other.cert + good.ca, other.key],
  'the key of another certificate': [other.cert, good.key],
  'a key that is cut off': [other.cert, halfOf(other.key)],
  'a certificate that has ended': [ended.cert, ended.key],
  'a certificate whose time has not come': [future.cert, future.key],
};

it.each(Object.entries(broken))('%s', async (_, [cert, key]) => {
  const mounted = await mountCertificate();
  const ca = await mounted.issue();
  const running = runInjector(mounted.settings);
  const port = await running.port();
  const before = await apiServer(port, ca).call('/mutate', REVIEW);

  await mounted.write({ 'tls.crt': cert, 'tls.key': key });
  await running.logged('certificate not reloaded, the last good one stays');
  expect(await apiServer(port, ca).call('/mutate', REVIEW)).toMatchObject({
    status: 200,
    certificate: before.certificate,
  });
  expect((await running.probe('/readyz')).status).toBe(200);
  expect((await running.probe('/metrics')).text).toContain(
    'token_sidecar_injector_certificate_reload_total{result="refused"} 1',
  );

  const next = await mounted.issue();
  await running.logged('certificate loaded');
  expect(await apiServer(port, next).call('/mutate', REVIEW)).toMatchObject({ status: 200 });
});

it('a whole chain is served', async () => {
  const mounted = await mountCertificate();
  await mounted.write({ 'tls.crt': other.cert + other.ca, 'tls.key': other.key });
  const port = await runInjector(mounted.settings).port();
  expect(await apiServer(port, other.ca).call('/mutate', REVIEW)).toMatchObject({ status: 200 });
});

function served() {
  const clock = new ManualClock();
  clock.stepWall(Date.now() - clock.now().wallMs);
  const { log, lines } = captureLog();
  const certificate = (from: { cert: string; key: string }) => {
    const parsed = parseServingCertificate(from.cert, from.key);
    if (typeof parsed === 'string') throw new Error(parsed);
    return parsed;
  };
  const metrics = createInjectorMetrics(new Registry());
  return {
    clock,
    lines,
    certificate,
    source: createServedCertificate({ clock, metrics, log }, certificate(good)),
  };
}

it('a certificate whose time has not come is served when it comes', async () => {
  const { clock, source, certificate } = served();
  source.offer(certificate(future));
  await clock.advance(0.9 * HOUR_MS);
  expect(source.current()?.cert).toBe(good.cert);
  await clock.advance(0.2 * HOUR_MS);
  expect(source.current()?.cert).toBe(future.cert);
});

it('a certificate whose time has not come is forgotten when another is offered', async () => {
  const { clock, source, certificate } = served();
  source.offer(certificate(future));
  source.offer(certificate(other));
  await clock.advance(2 * HOUR_MS);
  expect(source.current()?.cert).toBe(other.cert);
  expect(clock.pendingTimers).toBe(0);
});

it('a listener that throws keeps nobody else from the next certificate, nor itself', () => {
  const { source, certificate, lines } = served();
  const heard: string[] = [];
  source.onChange(() => {
    heard.push('first');
    throw new Error('a bug');
  });
  source.onChange(({ cert }) => heard.push(cert));
  source.offer(certificate(other));
  source.offer(certificate(good));
  expect(heard).toEqual(['first', other.cert, 'first', good.cert]);
  expect(lines.join()).toContain('a bug');
});
