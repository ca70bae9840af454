/** What pods get of profiles that leave their credentials to the broker. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { readBroker, readBrokerOfPods, watchBroker } from '../../../src/injector/broker-of-pods.ts';
import { type BrokerOfPods, MAX_AUTHORITIES } from '../../../src/injector/pod/cluster.ts';
import { credentialsViaBroker } from '../../../src/injector/profiles/broker-credentials.ts';
import type { Problem } from '../../../src/platform/problems.ts';
import { credentialFiles } from '../../../src/token/credentials.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { type Around, injectedBy, judged, ROUTE, refusalBy } from './pods-with-profiles.ts';

const PEM = createCertificateAuthority('broker').cert;
const BROKER: BrokerOfPods = {
  url: 'https://broker.tokens.svc:15084',
  audience: 'token-sidecar-broker',
  authorities: { from: 'file', current: () => PEM },
};
const TOLD: Around = { defaults: { broker: BROKER } };

/** All that the broker needs for the provider, and a pod must not have. */
const CREDENTIAL = {
  via: 'broker',
  issuerUrl: 'https://login.example.com',
  scope: 'payments.read',
  audience: 'payments',
  parameters: { resource: ['https://payments.example.com'] },
  secret: { name: 'payments-oauth', keys: { client_secret: 'password' } },
  tls: { ca: { configMap: { name: 'corporate-ca' } }, serverName: 'sso.internal' },
  egressProxy: { url: 'http://proxy.example.com:3128', secret: 'proxy-login' },
  timeouts: { request: '3s', wait: '2s' },
  renewal: { at: 0.5, recovery: '60s' },
};

const profile = (credential: object = {}, more: object = {}) => ({
  kind: 'ClusterTokenProfile' as const,
  name: 'payments',
  spec: {
    namespaces: { names: ['team'] },
    credentials: [{ ...CREDENTIAL, ...credential }],
    routes: [ROUTE],
    ...more,
  },
});

describe('a pod whose profile is via the broker', () => {
  it('asks the broker, by a token of its service account', () => {
    const { configuration, pod } = injectedBy([profile()], TOLD);
    expect(configuration.credentials).toEqual([
      {
        name: 'payments',
        dir: '/var/run/secrets/token-sidecar/payments',
        tokenUrl: 'https://broker.tokens.svc:15084/token/payments/payments',
        clientAuth: 'kubernetes_jwt',
        tls: { caFile: '/etc/token-sidecar-authorities/1/ca.crt' },
        timeouts: { wait: '2s' },
        renewal: { recovery: '5s' },
      },
    ]);
    expect(pod.spec.volumes).toContainEqual({
      name: 'token-sidecar-credentials-1',
      projected: {
        defaultMode: 0o440,
        sources: [
          {
            serviceAccountToken: {
              audience: 'token-sidecar-broker',
              expirationSeconds: 3600,
              path: 'token',
            },
          },
        ],
      },
    });
  });

  it('uses the names of the broker', () => {
    const named = profile({ name: 'orders' });
    for (const written of [profile(), named]) {
      const verdict = judged(written);
      if (verdict.state !== 'valid') throw new Error(JSON.stringify(verdict.problems));
      const held = credentialsViaBroker(verdict, credentialFiles, (name) => `/${name}`);
      const { configuration } = injectedBy([written], TOLD);
      expect(configuration.credentials.map(({ tokenUrl }) => tokenUrl)).toEqual(
        held.map(({ name }) => `${BROKER.url}/token/payments/${name}`),
      );
      expect(held).toHaveLength(1);
    }
  });

  it('has neither client credentials nor grant parameters', () => {
    const { pod, injection } = injectedBy([profile()], TOLD);
    expect(injection.secrets).toEqual([]);
    const text = JSON.stringify(pod);
    for (const absent of [
      '"secret"',
      'payments-oauth',
      'login.example.com',
      'payments.read',
      'corporate-ca',
    ]) {
      expect(text).not.toContain(absent);
    }
    expect(text).not.toMatch(/proxy-login|proxy\.example\.com|payments\.example\.com|sso\.internal/);
  });

  it('has the CAs of the broker in its own configuration', () => {
    const { pod } = injectedBy([profile()], TOLD);
    expect(pod.metadata.annotations['token-sidecar.dev/broker-ca']).toBe(PEM);
    expect(pod.spec.volumes).toContainEqual({
      name: 'token-sidecar-ca-1',
      projected: {
        defaultMode: 0o440,
        sources: [
          {
            downwardAPI: {
              items: [
                {
                  path: 'ca.crt',
                  fieldRef: { fieldPath: "metadata.annotations['token-sidecar.dev/broker-ca']" },
                },
              ],
            },
          },
        ],
      },
    });
  });

  it.each<[string, BrokerOfPods['authorities'], object]>([
    ['the public ones', { from: 'public' }, {}],
    [
      'those of a ConfigMap of its namespace',
      { from: 'config_map', name: 'broker-ca' },
      { tls: { caFile: '/etc/token-sidecar-authorities/1/ca.crt' } },
    ],
  ])('knows the broker by %s instead, and brings none', (_, authorities, expected) => {
    const around = { defaults: { broker: { ...BROKER, authorities } } };
    const { configuration, pod } = injectedBy([profile()], around);
    const [{ tls, ...credential } = {}] = configuration.credentials;
    expect({ ...(tls === undefined ? {} : { tls }) }).toEqual(expected);
    expect(credential['clientAuth']).toBe('kubernetes_jwt');
    expect(pod.metadata.annotations).not.toHaveProperty(['token-sidecar.dev/broker-ca']);
    expect(JSON.stringify(pod.spec.volumes)).toContain(
      authorities.from === 'config_map' ? '"configMap":{"name":"broker-ca"' : 'serviceAccountToken',
    );
  });

  it('has a sidecar that takes its configuration, beside a credential of its own', async () => {
    const own = { name: 'own', issuerUrl: 'https://login.example.com', secret: { name: 'own-oauth' } };
    const both = profile(
      {},
      {
        credentials: [{ ...CREDENTIAL, name: 'orders', output: { file: 'orders', endpoint: true } }, own],
        routes: [{ ...ROUTE, credential: 'orders' }],
      },
    );
    // The CAs would have to be where the sidecar has them.
    const around = { defaults: { broker: { ...BROKER, authorities: { from: 'public' } as const } } };
    const { configuration, pod } = injectedBy([both], around);
    const directory = mkdtempSync(join(tmpdir(), 'token-sidecar-broker-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const text = join(directory, 'token-sidecar.yaml');
    writeFileSync(text, JSON.stringify(configuration));
    const { credentials } = await loadConfig({ config: { key: '--config', text } });
    expect(credentials.map(({ name, tokenUrl }) => [name, tokenUrl])).toEqual([
      ['payments-orders', 'https://broker.tokens.svc:15084/token/payments/orders'],
      ['payments-own', undefined],
    ]);
    expect(credentials[0]).toMatchObject({
      output: { file: { path: '/var/run/token-sidecar/tokens/orders' } },
      renewal: { recoveryMs: 5000 },
    });
    expect(JSON.stringify(pod.spec.volumes)).toContain('"secret":{"name":"own-oauth"');
  });

  it('may have CAs of the broker’s namespace where the operator limits hosts', () => {
    const defaults = { broker: BROKER, allowed: { authHosts: ['sso.example.com'] } };
    expect(refusalBy([profile()], { defaults })).toBe('injected');
    expect(refusalBy([profile({ via: 'sidecar' })], { defaults })).toContain('spec.credentials[0].tls.ca');
  });

  it('gets the CAs that exist when it is created', () => {
    let current = PEM;
    const broker: BrokerOfPods = { ...BROKER, authorities: { from: 'file', current: () => current } };
    const next = createCertificateAuthority('next').cert;
    const brought = () =>
      injectedBy([profile()], { defaults: { broker } }).pod.metadata.annotations[
        'token-sidecar.dev/broker-ca'
      ];
    expect(brought()).toBe(PEM);
    current = next;
    expect(brought()).toBe(next);
  });
});

describe('a pod is refused', () => {
  it('where there is no broker', () => {
    expect(refusalBy([profile()])).toContain(
      'ClusterTokenProfile payments: spec.credentials[0].via: "broker": expected sidecar, as no broker is configured here (--broker-url)',
    );
  });

  it.each([
    ['secret', 'mine'],
    ['auth-url', 'https://mine.example.com'],
    ['realm', 'mine'],
    ['scope', 'everything'],
    ['audience', 'others'],
  ])('whose annotation %s would say what the broker is to ask for', (annotation, value) => {
    const annotations = { [`token-sidecar.dev/${annotation}`]: value };
    expect(refusalBy([profile()], { ...TOLD, annotations })).toContain(
      `token-sidecar.dev/${annotation}: expected nothing beside a profile that is via the broker`,
    );
  });

  it('that sets an annotation that only the injector writes', () => {
    const { pod } = injectedBy([profile()], TOLD);
    const ofPods = ['inject', 'profile', 'mode', 'status'].map((own) => `token-sidecar.dev/${own}`);
    const written = Object.entries(pod.metadata.annotations).filter(
      ([name]) => name.startsWith('token-sidecar.dev/') && !ofPods.includes(name),
    );
    expect(written).toHaveLength(3);
    for (const [name, value] of written) {
      const annotations = { [name]: value };
      expect(refusalBy([profile()], { ...TOLD, annotations }), name).toContain('only the injector writes it');
    }
  });

  it('that runs as a service account which the profile does not admit', () => {
    const admitting = profile({}, { serviceAccounts: ['checkout'] });
    const runsAs = (serviceAccountName: string) => ({ ...TOLD, spec: { serviceAccountName } });
    expect(refusalBy([admitting], runsAs('checkout'))).toBe('injected');
    expect(refusalBy([admitting], runsAs('check'))).toContain(
      'expected a ClusterTokenProfile that admits the service account check, which the pod runs as',
    );
    expect(refusalBy([admitting], TOLD)).toContain('the service account default');
  });
});

describe('settings of the broker', () => {
  const given = (values: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(values).map(([key, text]) => [key, { key: `--${key}`, text }]));
  const read = (values: Readonly<Record<string, string>>) => {
    const problems: Problem[] = [];
    const broker = readBrokerOfPods(given(values), problems);
    return { broker, problems };
  };

  it('are none unless a URL is given', () => {
    expect(read({})).toEqual({ broker: undefined, problems: [] });
  });

  it('have the audience of the broker, and trust the public CAs, unless they say otherwise', () => {
    expect(read({ 'broker-url': 'https://broker:15084' }).broker).toEqual({
      url: 'https://broker:15084',
      audience: 'token-sidecar-broker',
      authorities: { from: 'public' },
    });
    const all = {
      'broker-url': 'https://broker/',
      'broker-audience': 'tokens',
      'broker-ca-config-map': 'ca',
    };
    expect(read(all)).toEqual({
      broker: { url: 'https://broker', audience: 'tokens', authorities: { from: 'config_map', name: 'ca' } },
      problems: [],
    });
  });

  it.each([
    'http://broker:15084',
    'https://broker/path',
    'https://user@broker',
    'https://broker?a',
    'broker:15084',
    'https://',
  ])('refuse the URL %s', (url) => {
    expect(read({ 'broker-url': url }).problems).toMatchObject([
      { key: '--broker-url', value: url, expected: expect.stringMatching(/^an https URL of a host alone/) },
    ]);
  });

  it.each(['broker-ca-file', 'broker-ca-config-map', 'broker-audience'])('refuse %s without a URL', (key) => {
    expect(read({ [key]: 'something' }).problems).toEqual([
      { key: `--${key}`, expected: '--broker-url beside it' },
    ]);
  });

  it('refuse two sources of CAs', () => {
    const both = {
      'broker-url': 'https://broker',
      'broker-ca-file': '/ca.crt',
      'broker-ca-config-map': 'ca',
    };
    expect(read(both).problems).toEqual([
      { key: '--broker-ca-config-map', expected: 'either this or --broker-ca-file, not both' },
    ]);
  });
});

describe('CAs of the broker', () => {
  const { authorities: _, ...broker } = BROKER;
  async function mounted(text: string) {
    const secret = await mountSecret({ 'ca.crt': text });
    const path = `${secret.directory}/ca.crt`;
    return {
      secret,
      path,
      config: { ...broker, authorities: { from: 'file', path, key: '--broker-ca-file' } },
    } as const;
  }
  const pemOf = ({ authorities }: BrokerOfPods) =>
    authorities.from === 'file' ? authorities.current() : undefined;

  it('are the certificates of the file, without what stands beside them', async () => {
    const { config } = await mounted(
      `# made by hand\n${PEM}\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----`,
    );
    expect(pemOf(await readBroker(config))).toBe(PEM);
  });

  it.each([
    ['none', '', 'it holds no PEM certificate'],
    ['no CA', createCertificateAuthority('x').issue('x').cert, 'that is not of a CA'],
    [
      'too many',
      PEM.repeat(Math.ceil(MAX_AUTHORITIES / PEM.length) + 1),
      `more than ${MAX_AUTHORITIES} characters`,
    ],
  ])('are refused from the start where they are %s', async (_name, text, why) => {
    const { config, path } = await mounted(text === '' ? 'text' : text);
    const { log } = captureLog();
    const clock = new ManualClock();
    const refusal = {
      problems: [{ key: '--broker-ca-file', value: path, expected: expect.stringContaining(why) }],
    };
    await expect(readBroker(config)).rejects.toMatchObject(refusal);
    await expect(watchBroker(config, { log, clock, pollMs: 3_600_000 })).rejects.toMatchObject(refusal);
    expect(clock.pendingTimers).toBe(0);
  });

  it('are followed, and the last good ones stay', async () => {
    const { secret, config } = await mounted(PEM);
    const { log, lines } = captureLog();
    const clock = new ManualClock();
    const following = await watchBroker(config, { log, clock, pollMs: 3_600_000 });
    onTestFinished(following.close);
    expect(pemOf(following.ofPods)).toBe(PEM);
    const next = createCertificateAuthority('next').cert;
    await secret.update({ 'ca.crt': next });
    while (lines.length < 1) await clock.advance(20);
    expect(pemOf(following.ofPods)).toBe(next);
    await secret.update({ 'ca.crt': 'nothing' });
    while (lines.length < 2) await clock.advance(20);
    expect(pemOf(following.ofPods)).toBe(next);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'info', msg: "the broker's CAs loaded, for pods that are made from now on" },
      { level: 'error', msg: "the broker's CAs not reloaded, the last good ones stay" },
    ]);
  });
});
