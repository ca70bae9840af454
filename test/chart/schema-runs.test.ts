/** Whatever the schema of the values accepts, and Helm renders, the injector, the issuer and the broker run by. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BROKER_SETTINGS, readBrokerConfig } from '../../src/broker/settings.ts';
import { environmentName, readSettings, type Settings } from '../../src/config/settings.ts';
import { INJECTOR_SETTINGS, readInjectorConfig } from '../../src/injector/settings.ts';
import { ISSUER_SETTINGS, readIssuerConfig } from '../../src/issuer/settings.ts';
import { describeProblem, type Problem } from '../../src/platform/problems.ts';
import { type Manifest, only, parseManifests, template } from './manifests.ts';
import { CHART } from './tools.ts';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  /** A template refuses what its `if` leaves out. */
  readonly then?: Schema;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly uniqueItems?: boolean;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly definitions?: Readonly<Record<string, Schema>>;
}

const schema = JSON.parse(await readFile(`${CHART}/values.schema.json`, 'utf8')) as Schema;

/** Values that reach the injector's settings, by their path. All of `sidecar` does. */
const INJECTOR_PATHS = [
  'bindAddress',
  'global.imageRegistry',
  'global.imagePullSecrets',
  'global.logLevel',
  'global.compatibility.*',
  'image.repository',
  'image.tag',
  'image.pullPolicy',
  'sidecar.*',
  'injector.logLevel',
  'injector.allowed.*',
  'injector.clientVerification.*',
  'injector.kubernetesApi.events',
  'injector.certificates.selfManaged.*',
  'broker.audience',
  'broker.certificates.caConfigMap',
];

const ISSUER_PATHS = [
  'bindAddress',
  'global.logLevel',
  'issuer.authUrl',
  'issuer.adminUrl',
  'issuer.realm',
  'issuer.tokenLifetime',
  'issuer.logLevel',
  'issuer.signingKey.*',
];

const BROKER_PATHS = [
  'bindAddress',
  'global.logLevel',
  'broker.audience',
  'broker.logLevel',
  'broker.cache.url',
  'broker.cache.timeout',
];

function resolve(of: Schema): Schema {
  return of.$ref === undefined ? of : resolve(schema.definitions?.[of.$ref.split('/')[2] ?? ''] ?? {});
}

function at(path: string): Schema {
  return path
    .split('.')
    .reduce((found, name) => (name === '*' ? found : resolve(found.properties?.[name] ?? {})), schema);
}

/** Of the sidecar: what is for the included template alone, without which Helm refuses it. */
const INCLUDED_ALONE = ['tokenUrl', 'configMap', 'preStopSeconds'].map(
  (name) => at('sidecar').properties?.[name],
);

/** Everything that a schema accepts, as far as schemas of this chart go. */
function accepted(of: Schema): fc.Arbitrary<unknown> {
  const {
    type,
    enum: words,
    then,
    pattern = then?.pattern,
    minimum = 0,
    maximum = 1e9,
    anyOf,
    items,
    ...rest
  } = resolve(of);
  if (words !== undefined) return fc.constantFrom(...words);
  if (anyOf !== undefined) return fc.oneof(...anyOf.map(accepted));
  if (Array.isArray(type)) return fc.oneof(...type.map((one) => accepted({ ...resolve(of), type: one })));
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.oneof(fc.constantFrom(minimum, maximum), fc.integer({ min: minimum, max: maximum }));
    case 'number':
      return fc.oneof(
        fc.constantFrom(minimum, maximum, 0.5, 1, 1e8),
        fc.double({ min: minimum, max: maximum, noNaN: true }),
      );
    case 'string':
      // A host that claims to be in Punycode must be so, which no pattern can say.
      return pattern === undefined
        ? fc.string()
        : fc
            .stringMatching(new RegExp(pattern), { size: '-1' })
            .filter((text) => !/xn--/i.test(text) && text.length <= (rest.maxLength ?? Infinity));
    case 'array':
      return rest.uniqueItems === true
        ? fc.uniqueArray(accepted(items ?? {}), { maxLength: 3 })
        : fc.array(accepted(items ?? {}), { maxLength: 3 });
    case 'object':
      return objectOf(rest.properties ?? {}, rest.required ?? []);
    default:
      return fc.constant(undefined);
  }
}

function objectOf(
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[],
): fc.Arbitrary<object> {
  // These lists are for the included template alone, and hold objects of Kubernetes.
  const skipped = ['env', 'volumes', 'volumeMounts', 'claims'];
  const entries = Object.entries(properties).filter(
    ([name, of]) => !skipped.includes(name) && !INCLUDED_ALONE.includes(of),
  );
  return fc.record(Object.fromEntries(entries.map(([name, of]) => [name, accepted(of)])), {
    requiredKeys: [...required],
  });
}

function valuesAt(paths: readonly string[]): fc.Arbitrary<object> {
  return fc
    .tuple(...paths.map((path) => accepted(at(path))))
    .map((all) =>
      all.reduce<object>((merged, value, index) => set(merged, paths[index] as string, value), {}),
    );
}

function set(into: object, path: string, value: unknown): object {
  const [name = '', ...rest] = path.split('.').filter((part) => part !== '*');
  const inner = (into as Readonly<Record<string, object>>)[name] ?? {};
  return { ...into, [name]: rest.length === 0 ? value : set(inner, rest.join('.'), value) };
}

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'schema-runs-'));
});
afterAll(() => rm(directory, { recursive: true }));

/** A broker may be installed alone, or beside an injector that has pods find it. */
const BROKER = ['broker.enabled=true', 'broker.secrets={shop}'];

/** The environment of a program that Helm makes of the values; undefined when Helm itself refuses them. */
async function environmentBy(
  component: 'injector' | 'issuer' | 'broker',
  given: object,
  set: readonly string[],
  settings: Settings,
): Promise<Record<string, string> | undefined> {
  const file = join(directory, 'values.json');
  await writeFile(file, JSON.stringify(given));
  const args = ['--values', file, '--description', JSON.stringify(given)];
  const { ok, stdout, stderr } = await template({ set, args });
  if (!ok) {
    expect(stderr).toMatch(
      /sidecar\.(authUrl: http needs sidecar\.allowInsecureTokenUrl|caConfigMap: leave it empty where injector\.allowed)/,
    );
    return undefined;
  }
  const ofComponent = parseManifests(stdout).filter(
    ({ metadata }) => metadata.labels?.['app.kubernetes.io/component'] === component,
  );
  const [container] = only(ofComponent, 'Deployment').spec.template.spec.containers;
  const env = Object.fromEntries(container.env.map(({ name, value }: Manifest) => [name, value]));
  const known = Object.keys(settings).map(environmentName);
  expect(Object.keys(env).filter((name) => !known.includes(name))).toEqual([]);
  return env;
}

/** Problems of the injector with the values; undefined when Helm itself refuses them. */
async function problemsWith(given: object): Promise<readonly string[] | undefined> {
  const set = ['injector.certificates.source=self-managed', 'injector.profiles.enabled=true', ...BROKER];
  const env = await environmentBy('injector', given, set, INJECTOR_SETTINGS);
  if (env === undefined) return undefined;
  const problems: Problem[] = [];
  readInjectorConfig(readSettings(INJECTOR_SETTINGS, [], env).given, problems);
  return problems.map(describeProblem);
}

async function issuerProblemsWith(given: object): Promise<readonly string[]> {
  const set = ['injector.enabled=false', 'issuer.enabled=true', 'issuer.clients.secrets={shop}'];
  const env = (await environmentBy('issuer', given, set, ISSUER_SETTINGS)) ?? {};
  const problems: Problem[] = [];
  readIssuerConfig(readSettings(ISSUER_SETTINGS, [], env).given, problems);
  return problems.map(describeProblem);
}

async function brokerProblemsWith(given: object): Promise<readonly string[]> {
  const cache = ['broker.cache.url=rediss://cache.test', 'broker.cache.keySecret=cache-key'];
  const set = ['injector.enabled=false', ...BROKER, ...cache];
  const env = (await environmentBy('broker', given, set, BROKER_SETTINGS)) ?? {};
  const problems: Problem[] = [];
  readBrokerConfig(readSettings(BROKER_SETTINGS, [], env).given, problems);
  return problems.map(describeProblem);
}

test('the injector runs by any values that the schema accepts', async () => {
  await fc.assert(
    fc.asyncProperty(valuesAt(INJECTOR_PATHS), async (given) => {
      expect((await problemsWith(given)) ?? []).toEqual([]);
    }),
    { numRuns: 40, endOnFailure: true },
  );
}, 300_000);

test('the issuer runs by any values that the schema accepts', async () => {
  await fc.assert(
    fc.asyncProperty(valuesAt(ISSUER_PATHS), async (given) => {
      expect(await issuerProblemsWith(given)).toEqual([]);
    }),
    { numRuns: 20 },
  );
}, 300_000);

test('the broker runs by any values that the schema accepts', async () => {
  await fc.assert(
    fc.asyncProperty(valuesAt(BROKER_PATHS), async (given) => {
      expect(await brokerProblemsWith(given)).toEqual([]);
    }),
    { numRuns: 20 },
  );
}, 300_000);

test.each([
  ['the shortest life', { lifetime: '1h', propagation: '10m' }],
  ['the shortest life in seconds', { lifetime: '3600s', propagation: '0s' }],
  ['the longest life', { lifetime: '9999d', propagation: '99999ms' }],
])('%s of a certificate runs', async (_, selfManaged) => {
  expect(await problemsWith({ injector: { certificates: { selfManaged } } })).toEqual([]);
});

test.each(['3m', '59m', '3599s', '5000ms', '0d', '10000d', '1.5h'])(
  'a life of %s is refused',
  async (lifetime) => {
    const { ok, stderr } = await template({
      set: [`injector.certificates.selfManaged.lifetime=${lifetime}`],
    });
    expect(ok).toBe(false);
    expect(stderr).toContain('selfManaged/lifetime');
  },
);
