import { expect, it } from 'vitest';
import { credentialsViaBroker } from '../../../src/injector/profiles/broker-credentials.ts';
import type { ProfileIdentity, ValidProfile } from '../../../src/injector/profiles/profile.ts';
import { validateProfile } from '../../../src/injector/profiles/validate-profile.ts';
import { credentialFiles } from '../../../src/token/credentials.ts';
import { CREDENTIAL, ROUTE } from './pods-with-profiles.ts';

const OF_CLUSTER: ProfileIdentity = { kind: 'ClusterTokenProfile', name: 'payments' };
const judged = (spec: object) => validateProfile(OF_CLUSTER, spec, credentialFiles);

it('comes to credentials of the broker, whose paths are all below their root', () => {
  const verdict = judged({
    credentials: [
      {
        ...CREDENTIAL,
        name: 'orders',
        via: 'broker',
        secret: { name: 'oauth', keys: { client_id: 'user' } },
        tls: { ca: { configMap: { name: 'corporate' } } },
        egressProxy: { url: 'http://proxy:3128', secret: 'proxy-login' },
      },
      { ...CREDENTIAL, name: 'own' },
    ],
    routes: [{ ...ROUTE, credential: 'orders', tls: { clientCertificate: 'not-the-brokers' } }],
  });
  expect(verdict.state).toBe('valid');
  const found = credentialsViaBroker(verdict as ValidProfile, credentialFiles, (name) => `/root/${name}`);
  expect(found.map(({ name }) => name)).toEqual(['orders']);
  const [{ config, mounts }] = found as [(typeof found)[number]];
  const paths = [config.directory, config.tls.caFile, config.egressProxy?.credentialsDirectory];
  for (const path of paths) expect(path).toMatch(/^\/root\/orders\//);
  expect(config.output).toBeUndefined();
  const objects = JSON.stringify(mounts.map(({ volume }) => volume));
  for (const name of ['oauth', 'corporate', 'proxy-login']) expect(objects).toContain(name);
  expect(objects).not.toContain('not-the-brokers');
  for (const { mountPath } of mounts) expect(mountPath).toMatch(/^\/root\/orders\//);
});

it('binds no token to a key, since its tokens are for every pod', () => {
  const verdict = judged({
    credentials: [{ ...CREDENTIAL, via: 'broker', proofOfPossession: 'dpop' }],
    routes: [ROUTE],
  });
  expect(verdict).toMatchObject({
    state: 'invalid',
    problems: [
      {
        key: 'spec.credentials[0].proofOfPossession',
        value: 'dpop',
        expected: expect.stringContaining('nothing with via: broker'),
      },
    ],
  });
  expect(judged({ credentials: [{ ...CREDENTIAL, via: 'broker' }], routes: [ROUTE] }).state).toBe('valid');
});
