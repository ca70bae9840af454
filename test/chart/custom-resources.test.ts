/** TokenProfile and ClusterTokenProfile as an API server would judge them, by their definitions in the chart. */

import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { manifests } from './manifests.ts';
import { CHART, type Outcome } from './tools.ts';
import { validate } from './validator.ts';

const CREDENTIAL = { issuerUrl: 'https://login.example.com', secret: { name: 'oauth' } };
const ROUTE = { upstream: 'https://api.example.com' };
const SPEC = { credentials: [CREDENTIAL], routes: [ROUTE] };
const named = (name: string) => ({ ...CREDENTIAL, name });

const profile = (spec: object, kind = 'TokenProfile') => ({
  apiVersion: 'token-sidecar.dev/v1alpha1',
  kind,
  metadata: { name: 'payments', ...(kind === 'TokenProfile' ? { namespace: 'shop' } : {}) },
  spec,
});

const VALID: Readonly<Record<string, object>> = {
  least: profile(SPEC),
  'of-the-cluster': profile(
    { ...SPEC, namespaces: { names: ['shop'], selector: {} } },
    'ClusterTokenProfile',
  ),
  hosts: profile({ credentials: [CREDENTIAL], hosts: [{ host: '*.example.com' }], mode: 'forward' }),
  several: profile({
    credentials: [named('a'), named('b')],
    routes: [
      { ...ROUTE, name: 'a', credential: 'a' },
      { ...ROUTE, name: 'b', credential: 'b', match: { pathPrefix: '/b/' } },
    ],
  }),
  'service-account': profile({
    ...SPEC,
    credentials: [
      {
        authUrl: 'https://sso.example.com',
        realm: 'shop',
        clientAuth: 'kubernetes_jwt',
        serviceAccountToken: { audience: 'https://sso.example.com', expirationSeconds: 600 },
        parameters: { resource: ['a', 'b'] },
        tls: { ca: { configMap: { name: 'ca' } } },
      },
    ],
  }),
};

const INVALID: Readonly<Record<string, readonly [object, RegExp]>> = {
  purpose: [{ credentials: [CREDENTIAL] }, /say what the tokens are for/],
  credentials: [{ credentials: [], routes: [ROUTE] }, /spec\.credentials/],
  'unknown-field': [{ ...SPEC, credentials: [{ ...CREDENTIAL, scopes: 'a' }] }, /scopes/],
  'wrong-type': [{ ...SPEC, credentials: [{ ...CREDENTIAL, required: 'no' }] }, /required/],
  'wrong-word': [{ ...SPEC, credentials: [{ ...CREDENTIAL, clientAuth: 'basic' }] }, /clientAuth/],
  'no-upstream': [{ ...SPEC, routes: [{}] }, /upstream/],
  providers: [{ ...SPEC, credentials: [{ ...CREDENTIAL, tokenUrl: 'https://sso' }] }, /give one of authUrl/],
  provider: [{ ...SPEC, credentials: [{ secret: { name: 'a' } }] }, /say where tokens are asked for/],
  realm: [{ ...SPEC, credentials: [{ ...CREDENTIAL, realm: 'a' }] }, /realm goes with authUrl/],
  proof: [{ ...SPEC, credentials: [{ issuerUrl: 'https://sso' }] }, /say what proves the client/],
  ca: [{ ...SPEC, credentials: [{ ...CREDENTIAL, tls: { ca: {} } }] }, /give either a configMap or a secret/],
  names: [
    { ...SPEC, credentials: [CREDENTIAL, CREDENTIAL] },
    /several credentials, each has a name of its own/,
  ],
  'one-name-twice': [
    { credentials: [named('a'), named('a')], routes: [{ ...ROUTE, credential: 'a' }] },
    /several credentials, each has a name of its own/,
  ],
  'unknown-credential': [{ ...SPEC, routes: [{ ...ROUTE, credential: 'x' }] }, /each of routes names one of/],
  mode: [{ ...SPEC, mode: 'forward' }, /mode reverse goes with routes alone/],
};

/** By the name of a file. */
const outcomes = new Map<string, Outcome>();

beforeAll(async () => {
  const one = async (name: string, value: object): Promise<void> => {
    outcomes.set(name, await validate('1.30', new Map([[name, stringify(value)]]), `${CHART}/files/crds`));
  };
  for (const [name, value] of Object.entries(VALID)) await one(name, value);
  for (const [name, [spec]] of Object.entries(INVALID)) await one(name, profile(spec));
}, 120_000);

describe('a profile', () => {
  test.each(Object.keys(VALID))('%s is taken', (name) => {
    const { ok, stdout, stderr } = outcomes.get(name) as Outcome;
    expect(ok, stdout + stderr).toBe(true);
  });

  test.each(Object.entries(INVALID))('%s is refused', (name, [, reason]) => {
    const { ok, stdout, stderr } = outcomes.get(name) as Outcome;
    expect(ok).toBe(false);
    expect(stdout + stderr).toMatch(reason);
  });
});

describe('the chart', () => {
  const definitions = async (...set: readonly string[]) =>
    (await manifests({ set })).filter(({ kind }) => kind === 'CustomResourceDefinition');

  test('installs no definitions unless it is told to', async () => {
    expect(await definitions()).toEqual([]);
  });

  test('has them stay when the release goes, unless it is told otherwise', async () => {
    const policies = async (...set: readonly string[]) =>
      (await definitions('crds.enabled=true', ...set)).map(({ metadata }) => metadata.annotations);
    expect(await policies()).toEqual(Array(2).fill({ 'helm.sh/resource-policy': 'keep' }));
    expect(await policies('crds.keep=false')).toEqual([undefined, undefined]);
  });

  test('installs what is generated, to the letter', async () => {
    for (const { metadata, spec } of await definitions('crds.enabled=true')) {
      const [plural, ...group] = metadata.name.split('.');
      const written = await readFile(`${CHART}/files/crds/${group.join('.')}_${plural}.yaml`, 'utf8');
      expect(spec).toEqual(parse(written).spec);
    }
  });
});
