/** Certificates as the Secret keeps them and the webhooks trust them. */

import { generateKeyPairSync, sign, X509Certificate } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { issueCertificate } from '../../src/injector/certificate/certificate-authority.ts';
import {
  begunAuthorities,
  collectionOf,
  livingAuthorities,
  readStoredCertificates,
  servingCertificateOf,
  trustAuthorities,
  writeStoredCertificates,
} from '../../src/injector/certificate/stored-certificates.ts';
import { createInjectorMetrics } from '../../src/injector/metrics.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import {
  certificateMissing,
  createServedCertificate,
  outsideValidity,
  parseServingCertificate,
} from '../../src/platform/tls/serving-certificate.ts';
import { der, integer, oid, sequence, set, utcTime } from '../support/der.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { scriptedKubernetes } from './scripted-kubernetes.ts';

const HOUR_MS = 3_600_000;
/** Where the manual clock begins. */
const NOW_MS = Date.parse('2030-01-01T00:00:00Z');
const issue = (nowMs = NOW_MS) => issueCertificate({ hosts: ['hook'], nowMs, lifetimeMs: HOUR_MS });
const [first, second, later, ended] = await Promise.all([
  issue(),
  issue(),
  issue(NOW_MS + 2 * HOUR_MS),
  issue(NOW_MS - 2 * HOUR_MS),
]);

describe('a Secret', () => {
  const content = { current: servingCertificateOf(first), authorities: [first.ca] };

  it('keeps what it is given, and what else it held', () => {
    const stored = {
      ...content,
      next: servingCertificateOf(second),
      publishedAtMs: NOW_MS,
      authorities: [second.ca, first.ca],
    };
    const secret = writeStoredCertificates(
      {
        type: 'kubernetes.io/tls',
        metadata: { name: 's', resourceVersion: '7', annotations: { a: 'b' } },
        data: { old: 'eA==' },
      },
      stored,
    );
    expect(secret).toMatchObject({
      type: 'kubernetes.io/tls',
      metadata: { name: 's', resourceVersion: '7', annotations: { a: 'b' } },
    });
    expect(Object.keys(secret.data ?? {})).toEqual(['tls.crt', 'tls.key', 'ca.crt', 'next.crt', 'next.key']);
    expect(readStoredCertificates(secret)).toEqual(stored);
    // A successor that has taken over leaves nothing behind.
    const after = writeStoredCertificates(secret, content);
    expect(Object.keys(after.data ?? {})).toEqual(['tls.crt', 'tls.key', 'ca.crt']);
    expect(after.metadata.annotations).toEqual({ a: 'b' });
    expect(readStoredCertificates(after)).toEqual(content);
  });

  it.each([
    undefined,
    { metadata: {} },
    { metadata: {}, data: {} },
    { metadata: {}, data: { 'tls.crt': 'AAAA' } },
  ])('holds nothing that can be used: %j', (secret) => {
    expect(readStoredCertificates(secret)).toBeUndefined();
  });

  it.each([
    ['', 0],
    [`${first.ca}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n${second.ca}`, 2],
  ])('trusts what its bundle holds of certificates', (bundle, count) => {
    const secret = writeStoredCertificates({ metadata: {} }, content);
    const data = { ...secret.data, 'ca.crt': Buffer.from(bundle).toString('base64') };
    expect(readStoredCertificates({ ...secret, data })?.authorities).toEqual(
      [first.ca, second.ca].slice(0, count),
    );
  });

  it('forgets authorities with their end', () => {
    expect(livingAuthorities([first.ca, later.ca], NOW_MS + HOUR_MS - 1)).toEqual([first.ca, later.ca]);
    expect(livingAuthorities([first.ca, later.ca], NOW_MS + HOUR_MS)).toEqual([later.ca]);
  });

  it('recognises authorities made by a clock that was ahead', () => {
    expect(begunAuthorities([later.ca, first.ca], NOW_MS + HOUR_MS - 1)).toEqual([first.ca]);
    expect(begunAuthorities([later.ca, first.ca], NOW_MS + HOUR_MS)).toEqual([later.ca, first.ca]);
  });
});

describe('a certificate', () => {
  it('that was just made and is unusable is an internal error', () => {
    expect(() => servingCertificateOf({ ...first, key: second.key })).toThrow(TypeError);
  });

  it.each([
    ['no certificate', 'x', first.key, 'is no PEM certificate'],
    ['a key of another', first.cert, second.key, 'the private key is not that of the certificate'],
    ['no key', first.cert, 'x', 'the private key is no PEM key'],
    ['the chain of another', first.cert + second.ca, first.key, 'the chain is that of another certificate'],
    [
      'a chain that is garbled',
      `${first.cert}-----BEGIN CERTIFICATE-----\nA\n`,
      first.key,
      'or its chain is no PEM',
    ],
  ])('is refused for %s', (_, cert, key, why) => {
    expect(parseServingCertificate(cert, key)).toContain(why);
  });

  it('is taken with its chain', () => {
    expect(parseServingCertificate(first.cert + first.ca, first.key)).toMatchObject({
      cert: first.cert + first.ca,
      startsAtMs: NOW_MS - HOUR_MS,
      expiresAtMs: NOW_MS + HOUR_MS,
    });
  });

  it('is usable from notBefore to notAfter', () => {
    const times = { cert: '', key: '', startsAtMs: 1000, expiresAtMs: 2000 };
    expect([999, 1000, 1999, 2000].map((nowMs) => outsideValidity(times, nowMs))).toEqual([
      'it is not valid before 1970-01-01T00:00:01.000Z',
      undefined,
      undefined,
      'it ended 1970-01-01T00:00:02.000Z',
    ]);
    expect(certificateMissing(undefined, 0)).toBe('there is none yet');
    expect(certificateMissing(times, 1500)).toBeUndefined();
  });
});

it('a host may be longer than a common name', async () => {
  const long = `${'a'.repeat(60)}.${'b'.repeat(60)}`;
  const { cert } = await issueCertificate({ hosts: [long], nowMs: NOW_MS, lifetimeMs: HOUR_MS });
  const made = new X509Certificate(cert);
  expect(made.subject).toBe(`CN=${long.slice(0, 64)}`);
  expect(made.checkHost(long)).toBe(long);
});

describe('the certificate in use', () => {
  function serve(initial?: typeof first) {
    const clock = new ManualClock();
    const { log, lines } = captureLog();
    const metrics = { certificateLoaded: vi.fn(), certificateRefused: vi.fn() };
    const served = createServedCertificate(
      { clock, metrics, log },
      initial === undefined ? undefined : servingCertificateOf(initial),
    );
    return { ...served, clock, metrics, lines, cert: () => served.current()?.cert };
  }

  it('is replaced by one that is valid, and by the same one never', () => {
    const { offer, cert, metrics, onChange, lines } = serve(first);
    const heard = vi.fn();
    const end = onChange(heard);
    offer(servingCertificateOf(first));
    expect(heard).not.toHaveBeenCalled();
    offer(servingCertificateOf(second));
    expect([cert(), heard.mock.calls.length]).toEqual([second.cert, 1]);
    expect(JSON.parse(lines[0] as string)).toMatchObject({
      level: 'info',
      expiresAt: '2030-01-01T01:00:00.000Z',
    });
    expect(metrics.certificateLoaded.mock.calls).toEqual([[NOW_MS + HOUR_MS], [NOW_MS + HOUR_MS]]);
    end();
    offer(servingCertificateOf(first));
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('is logged as loaded when the same one is offered after a refusal', () => {
    const { offer, refuse, lines, metrics } = serve(first);
    for (let n = 0; n < 2; n++) {
      refuse('the file is empty');
      offer(servingCertificateOf(first));
    }
    expect(lines.map((line) => JSON.parse(line).level)).toEqual(['error', 'info', 'error', 'info']);
    expect(metrics.certificateLoaded).toHaveBeenCalledTimes(3);
  });

  it('is replaced by the same certificate with another key file, which has changed too', () => {
    const { offer, cert, metrics } = serve(first);
    offer({ ...servingCertificateOf(first), key: `${first.key}\n` });
    expect(cert()).toBe(first.cert);
    expect(metrics.certificateLoaded).toHaveBeenCalledTimes(2);
  });

  it('stays if the other has expired or is not valid yet', async () => {
    const { offer, cert, metrics, clock, lines } = serve(first);
    offer(servingCertificateOf(ended));
    expect(clock.pendingTimers).toBe(0);
    offer(servingCertificateOf(later));
    expect([cert(), metrics.certificateRefused.mock.calls.length]).toEqual([first.cert, 2]);
    expect(lines.join()).toContain('the last good one stays');
    await clock.advance(HOUR_MS - 1);
    expect(cert()).toBe(first.cert);
    await clock.advance(1);
    expect(cert()).toBe(later.cert);
  });

  it('is replaced within 15 s after a clock step makes its successor valid, which is logged once', async () => {
    const { offer, cert, metrics, clock } = serve(first);
    offer(servingCertificateOf(later));
    await clock.advance(60_000);
    expect([cert(), clock.pendingTimers]).toEqual([first.cert, 1]);
    clock.stepWall(2 * HOUR_MS);
    await clock.advance(15_000);
    expect([cert(), metrics.certificateRefused.mock.calls.length]).toEqual([later.cert, 1]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('stays if a clock step makes its successor invalid again', async () => {
    const { offer, cert, clock } = serve(first);
    offer(servingCertificateOf(later));
    clock.stepWall(-HOUR_MS / 2);
    await clock.advance(HOUR_MS * 1.5 - 1);
    expect(cert()).toBe(first.cert);
    await clock.advance(1);
    expect(cert()).toBe(later.cert);
  });

  it.each<[string, (served: ReturnType<typeof serve>) => void]>([
    ['by another that is offered', ({ offer }) => offer(servingCertificateOf(first))],
    ['by one that cannot be used', ({ refuse }) => refuse('why')],
    ['by the end', ({ close }) => close()],
  ])('one that waits for its time is forgotten %s', async (_, happens) => {
    const served = serve(first);
    served.offer(servingCertificateOf(later));
    happens(served);
    expect(served.clock.pendingTimers).toBe(0);
  });

  it('may be unusable if there is no better one', () => {
    const { offer, cert } = serve();
    expect(cert()).toBeUndefined();
    offer(servingCertificateOf(ended));
    expect(cert()).toBe(ended.cert);
    offer(servingCertificateOf(later));
    expect(cert()).toBe(later.cert);
  });

  it('is announced to all listeners, whichever of them fails', () => {
    const { offer, onChange, metrics, lines } = serve(first);
    const heard = vi.fn();
    onChange(() => {
      throw new Error('no context');
    });
    onChange(heard);
    offer(servingCertificateOf(second));
    expect(heard).toHaveBeenCalledTimes(1);
    expect(metrics.certificateRefused).toHaveBeenCalledTimes(1);
    expect(lines.join()).toContain('no context');
  });
});

it('a key that TLS finds too short is refused with the reason', () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 512 });
  const rsaWithSha256 = sequence(oid('2a864886f70d01010b'), der(0x05));
  const name = sequence(set(sequence(oid('550403'), der(0x0c, Buffer.from('weak')))));
  const validity = sequence(utcTime('200101000000Z'), utcTime('491231235959Z'));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const signed = sequence(integer('01'), rsaWithSha256, name, validity, name, spki);
  const signature = der(0x03, Buffer.from([0]), sign('sha256', signed, privateKey));
  const cert = new X509Certificate(sequence(signed, rsaWithSha256, signature)).toString();
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  expect(parseServingCertificate(cert, key)).toContain('TLS does not take it: ');
});

describe('webhooks', () => {
  const bundle = Buffer.from('ab').toString('base64');
  const configuration = { kind: 'validating', name: 'hook' } as const;
  const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook';

  it.each([
    ['trust these already', { webhooks: [{ name: 'a', clientConfig: { caBundle: bundle } }] }],
    ['are none', {}],
  ])('are not written where they %s', async (_, found) => {
    const { api, asked } = scriptedKubernetes(() => found);
    await trustAuthorities(api, configuration, ['a', 'b']);
    expect(asked.map(({ method }) => method)).toEqual(['GET']);
    expect(asked[0]?.path).toBe(path);
  });

  it('are written, each by its name, if their CA bundle differs or is empty', async () => {
    const webhooks = [
      { name: 'a' },
      { name: 'b', clientConfig: { caBundle: bundle } },
      { name: 'c', clientConfig: {} },
    ];
    const { api, asked } = scriptedKubernetes(() => ({ webhooks }));
    await trustAuthorities(api, configuration, ['a', 'b']);
    expect(asked[1]).toMatchObject({
      method: 'PATCH',
      path,
      body: { webhooks: ['a', 'c'].map((name) => ({ name, clientConfig: { caBundle: bundle } })) },
    });
    expect(collectionOf({ kind: 'mutating', name: 'x' })).toMatch(/\/mutatingwebhookconfigurations$/);
  });
});

it('metrics begin at zero, so that the first of each is seen as an increase', async () => {
  const registry = new Registry();
  const metrics = createInjectorMetrics(registry);
  const line = async (name: string) =>
    (await registry.metrics()).split('\n').find((each) => each.startsWith(`token_sidecar_injector_${name} `));
  const counters = [
    'admissions_total{result="injected",reason="native"}',
    'admissions_total{result="error",reason="internal"}',
    'certificate_reload_total{result="loaded"}',
    'certificate_reload_total{result="refused"}',
    ...['displaced', 'sent_ahead', 'handshake', 'untrusted', 'client_name'].map(
      (reason) => `connections_dropped_total{reason="${reason}"}`,
    ),
  ];
  for (const name of counters) expect(await line(name)).toMatch(/ 0$/);
  metrics.admitted('error', 'internal', 0.002);
  metrics.certificateLoaded(5000);
  metrics.certificateRefused();
  metrics.connectionDropped('displaced');
  expect(await line('admissions_total{result="error",reason="internal"}')).toMatch(/ 1$/);
  expect(await line('certificate_expiry_timestamp_seconds')).toMatch(/ 5$/);
  expect(await line('certificate_reload_total{result="refused"}')).toMatch(/ 1$/);
  expect(await line('certificate_reload_total{result="loaded"}')).toMatch(/ 1$/);
  expect(await line('connections_dropped_total{reason="displaced"}')).toMatch(/ 1$/);
  expect(await line('admission_duration_seconds_bucket{le="0.0025"}')).toMatch(/ 1$/);
  expect(await line('admission_duration_seconds_bucket{le="0.001"}')).toMatch(/ 0$/);
});
