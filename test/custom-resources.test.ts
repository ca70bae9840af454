/** The definitions of TokenProfile and ClusterTokenProfile, as far as it takes no cluster to know them right. */

import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { customResourceDefinitions } from '../scripts/custom-resources/custom-resources.ts';
import { structuralSchema } from '../scripts/custom-resources/structural-schema.ts';
import { judged, ROUTE } from './injector/profiles/pods-with-profiles.ts';

interface Node {
  readonly description?: string;
  readonly type: string;
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly additionalProperties?: Node;
}

const definitions = Object.values(customResourceDefinitions()).map((text) => parse(text));
const propertiesOf = (definition: (typeof definitions)[number]): Record<'spec' | 'status', Node> =>
  definition.spec.versions[0].schema.openAPIV3Schema.properties;
const specOf = (definition: (typeof definitions)[number]): Node => propertiesOf(definition).spec;

/** Every schema with its path; items and values of maps are described by what holds them. */
function* nodes(
  node: Node,
  path = 'spec',
  isField = true,
): Generator<{ path: string; node: Node; isField: boolean }> {
  yield { path, node, isField };
  for (const [name, inner] of Object.entries(node.properties ?? {})) yield* nodes(inner, `${path}.${name}`);
  if (node.items !== undefined) yield* nodes(node.items, `${path}[]`, false);
  if (node.additionalProperties !== undefined) yield* nodes(node.additionalProperties, `${path}{}`, false);
}

const all = definitions.flatMap((definition) => [...nodes(specOf(definition))]);

it('are of both kinds, and one has the fields of the other', () => {
  expect(definitions.map(({ spec }) => [spec.names.kind, spec.scope])).toEqual([
    ['TokenProfile', 'Namespaced'],
    ['ClusterTokenProfile', 'Cluster'],
  ]);
  const [fields, ofCluster] = definitions.map((definition) =>
    Object.keys(specOf(definition).properties ?? {}),
  );
  expect(ofCluster).toEqual(['namespaces', 'serviceAccounts', ...(fields ?? [])]);
  expect(all.length).toBeGreaterThan(150);
});

it('say of every field what it is', () => {
  const silent = all.filter(({ node, isField }) => isField && (node.description ?? '').length < 5);
  expect(silent).toEqual([]);
});

it('bound every text, so that the cost of a rule is known', () => {
  const unbounded = all.filter(
    ({ node }) => node.type === 'string' && node.enum === undefined && node.maxLength === undefined,
  );
  expect(unbounded).toEqual([]);
});

it('bound every list, that of the conditions too', () => {
  const ofStatus = definitions.flatMap((definition) => [...nodes(propertiesOf(definition).status, 'status')]);
  const lists = [...all, ...ofStatus].filter(({ node }) => node.type === 'array');
  expect(lists.filter(({ node }) => node.maxItems === undefined)).toEqual([]);
  expect(lists.filter(({ path }) => path === 'status.conditions')).toHaveLength(2);
});

it('go through no list for each member of another: that took the API server a quarter of a second for a large profile', () => {
  const nested =
    /self\.\w+\.(?:all|exists)\([^()]*(?:\([^()]*\)[^()]*)*self\.\w+\.(?:all|exists|exists_one|filter|map)\(/;
  const rules = definitions.flatMap((definition) => {
    const { 'x-kubernetes-validations': own } = specOf(definition) as {
      'x-kubernetes-validations'?: readonly { readonly rule: string }[];
    };
    return own?.map(({ rule }) => rule) ?? [];
  });
  expect(rules.length).toBeGreaterThan(10);
  expect(rules.filter((rule) => nested.test(rule))).toEqual([]);
});

it('have patterns that Go understands', () => {
  const foreign = all.filter(({ node }) => /\(\?[=!<]|\\[1-9]/.test(node.pattern ?? ''));
  expect(foreign).toEqual([]);
  expect(all.some(({ node }) => node.pattern?.startsWith('^\\/(?:[A-Za-z0-9') === true)).toBe(true);
});

it('cannot be made of a field that nothing is said of, nor of a value of several types', () => {
  const words = { descriptions: { '': 'All.' }, rules: {} };
  const schema = { type: 'object', properties: { new: { type: 'string' } } };
  expect(() => structuralSchema(schema, words)).toThrow('new: say in descriptions.ts what it is');
  expect(() => structuralSchema({}, words)).toThrow('a value of Kubernetes has one type');
});

it('ask for values of In and NotIn, without which a selector would take every namespace', () => {
  const ofCluster = specOf(definitions[1]).properties?.['namespaces']?.properties?.['selector'];
  expect(ofCluster?.properties?.['matchExpressions']?.items).toMatchObject({
    properties: { values: { minItems: 1 } },
    'x-kubernetes-validations': [{ rule: "(self.operator in ['In', 'NotIn']) == has(self.values)" }],
  });
});

it('ask for no Secret where each request brings the token that is exchanged, as the injector has no use for one', () => {
  const ofRequests = {
    issuerUrl: 'https://login.example.com',
    clientAuth: 'none',
    grant: 'token_exchange',
    tokenExchange: { subjectTokenFrom: 'request' },
  };
  const spec = { credentials: [ofRequests], routes: [ROUTE] };
  expect(judged({ name: 'payments', spec }).state).toBe('valid');
  const needless = { credentials: [{ ...ofRequests, secret: { name: 'oauth' } }], routes: [ROUTE] };
  expect(judged({ name: 'payments', spec: needless }).state).toBe('invalid');
  for (const definition of definitions) {
    expect(specOf(definition).properties?.['credentials']?.items).toMatchObject({
      'x-kubernetes-validations': expect.arrayContaining([
        {
          rule: expect.stringMatching(
            /^has\(self\.secret\) \|\| .* self\.clientAuth == 'none' .* self\.tokenExchange\.subjectTokenFrom == 'request'\)$/,
          ),
          message: expect.any(String),
        },
      ]),
    });
  }
});

it('have a broker in the kind of the cluster alone, for the grants that it can', () => {
  const rulesOf = (definition: (typeof definitions)[number]) =>
    specOf(definition).properties?.['credentials']?.items as { 'x-kubernetes-validations'?: unknown };
  const [namespaced, ofCluster] = definitions.map((definition) =>
    JSON.stringify(rulesOf(definition)['x-kubernetes-validations']),
  );
  expect(namespaced).toContain("!has(self.via) || self.via == 'sidecar'");
  expect(ofCluster).toContain("self.grant in ['client_credentials', 'jwt_bearer']");
  expect(ofCluster).not.toContain("self.via == 'sidecar'");
});
