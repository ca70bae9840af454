/** How clients are defined: every field, and what is said of each that is wrong. */

import { describe, expect, it } from 'vitest';
import { parseClients } from '../../src/issuer/client-sources.ts';
import { createClientSet, createClientStore, defineClient, defineClients } from '../../src/issuer/clients.ts';
import { describeRefusal, Refusal, type RefusalCode } from '../../src/issuer/refusal.ts';
import { hashSecret } from '../../src/issuer/secret-hashing.ts';
import { decideGrant } from '../../src/issuer/token-service.ts';

type ClientDefinition = Parameters<typeof defineClients>[0][number];

const cheap = (ln: number, r = 1, p = 1) => hashSecret('x', { ln, r, p });
const [h1, h2] = await Promise.all([cheap(1), cheap(2)]);
const SHOP: ClientDefinition = { clientId: 'shop', clientSecret: 's3cret' };

function problemsOf(definition: ClientDefinition) {
  const problems: { readonly key: string; readonly value?: string; readonly expected: string }[] = [];
  const client = defineClient(definition, (field) => `of.${field}`, problems as never);
  expect(client === undefined).toBe(problems.length > 0);
  return problems;
}

describe('a definition', () => {
  it.each<[string, ClientDefinition, object]>([
    ['no id', { clientSecret: 'x' }, { key: 'of.clientId' }],
    ['an empty id', { ...SHOP, clientId: '' }, { key: 'of.clientId' }],
    ['no secret', { clientId: 'shop' }, { key: 'of.clientSecret', expected: 'either this or of.secretHash' }],
    [
      'both forms',
      { ...SHOP, secretHash: h1 },
      { key: 'of.clientSecret', expected: 'either this or of.secretHash, not both' },
    ],
    [
      'both forms of the second',
      { ...SHOP, secondClientSecret: 'y', secondSecretHash: h1 },
      { key: 'of.secondClientSecret', expected: 'either this or of.secondSecretHash, not both' },
    ],
    ['an empty secret', { ...SHOP, clientSecret: '' }, { key: 'of.clientSecret' }],
    ['an empty second secret', { ...SHOP, secondClientSecret: '' }, { key: 'of.secondClientSecret' }],
    ['a hash that is none', { clientId: 'shop', secretHash: 'x' }, { key: 'of.secretHash' }],
    ['a second hash that is none', { ...SHOP, secondSecretHash: 'x' }, { key: 'of.secondSecretHash' }],
    ['a scope that is none', { ...SHOP, scopes: ['read', 'a b'] }, { key: 'of.scopes', value: 'a b' }],
    ['an empty audience', { ...SHOP, audience: ['a', ''] }, { key: 'of.audience', value: '' }],
    [
      'a lifetime that is none',
      { ...SHOP, tokenLifetime: '1500ms' },
      { key: 'of.tokenLifetime', value: '1500ms' },
    ],
    [
      'neither true nor false',
      { ...SHOP, dpopBoundAccessTokens: 'yes' },
      { key: 'of.dpopBoundAccessTokens', value: 'yes', expected: 'true or false' },
    ],
  ])('with %s is told so, and of nothing else', (_, definition, problem) => {
    expect(problemsOf(definition)).toEqual([{ expected: expect.stringMatching(/./), ...problem }]);
  });

  it('may have two secrets, of either form', () => {
    const kinds = (definition: ClientDefinition) =>
      defineClient({ clientId: 'a', ...definition }, String, [])?.secrets.map(({ kind }) => kind);
    expect(kinds({ clientSecret: 'x', secondClientSecret: 'y' })).toEqual(['sha256', 'sha256']);
    expect(kinds({ clientSecret: 'x', secondSecretHash: h1 })).toEqual(['sha256', 'scrypt']);
    expect(kinds({ secretHash: h1, secondClientSecret: 'y' })).toEqual(['scrypt', 'sha256']);
    expect(kinds({ secretHash: h1, secondSecretHash: h2 })).toEqual(['scrypt', 'scrypt']);
  });

  it.each([
    ['dpopBoundAccessTokens: true', true],
    ['dpopBoundAccessTokens: false', undefined],
    ['', undefined],
  ])('with %j demands a proof: %s', (field, demands) => {
    const set = parseClients(`clients: [{ clientId: a, clientSecret: x, ${field} }]`);
    expect(set.find('a')?.dpopBoundAccessTokens).toBe(demands);
  });

  it('names each scope and audience once', () => {
    const client = defineClient(
      { ...SHOP, scopes: ['a', 'b', 'a'], audience: ['x', 'x'], tokenLifetime: '2s' },
      String,
      [],
    );
    expect(client).toMatchObject({ scopes: ['a', 'b'], audience: ['x'], tokenLifetimeSeconds: 2 });
    expect(defineClient(SHOP, String, [])).toStrictEqual({
      clientId: 'shop',
      secrets: [expect.anything()],
      scopes: [],
      audience: [],
    });
  });
});

describe('a set of clients', () => {
  it.each([
    [['a', 'b', 'a'], [{ key: 'clients[2]', value: 'a', expected: 'a client id used only once' }]],
    [['a b', 'a+b'], [{ key: 'clients[1]', value: 'a+b', expected: expect.stringContaining('"a b"') }]],
    [['a%20b', 'a b'], [{ key: 'clients[0]', value: 'a%20b', expected: expect.stringContaining('"a b"') }]],
  ])('of %j is ambiguous', (ids, problems) => {
    const definitions = ids.map((clientId) => ({ clientId, clientSecret: 'x' }));
    expect(() => defineClients(definitions)).toThrow(expect.objectContaining({ problems }));
  });

  it.each([[['a+b', 'a%2Bb2']], [['a%', 'b']], [['a+b']], [['a', 'A']]])('of %j is not', (ids) => {
    expect(defineClients(ids.map((clientId) => ({ clientId, clientSecret: 'x' }))).size).toBe(ids.length);
  });

  it('knows its hashes, and the most expensive one', async () => {
    const dear = await cheap(2, 2, 3);
    const set = defineClients([
      { clientId: 'a', secretHash: h1, secondSecretHash: dear },
      { clientId: 'b', secretHash: h2 },
      SHOP,
    ]);
    expect(set.hashes).toEqual(new Set([h1, h2, dear]));
    expect(set.dearestCost).toEqual({ ln: 2, r: 2, p: 3 });
    expect(defineClients([SHOP])).not.toHaveProperty('dearestCost');
    const inLanes = await cheap(1, 1, 9);
    expect(defineClients([{ clientId: 'a', secretHash: h2, secondSecretHash: inLanes }]).dearestCost).toEqual(
      { ln: 1, r: 1, p: 9 },
    );
    const inBlocks = await cheap(1, 9, 1);
    expect(
      defineClients([{ clientId: 'a', secretHash: inBlocks, secondSecretHash: h2 }]).dearestCost,
    ).toEqual({ ln: 1, r: 9, p: 1 });
  });

  it('may be empty, and is replaced as a whole', () => {
    const [none, one] = [createClientSet([]), defineClients([SHOP])];
    const store = createClientStore(none);
    expect(store.current()).toBe(none);
    store.replace(one);
    expect(store.current()).toBe(one);
  });
});

describe('a file of clients', () => {
  function problems(text: string) {
    try {
      parseClients(text);
    } catch (error) {
      return (error as { problems: readonly { key: string; expected: string }[] }).problems;
    }
    return [];
  }

  it.each([
    [
      'clients: [',
      { key: 'line 1, column 11', expected: expect.stringMatching(/^valid YAML: .* \([A-Z_]+\)$/) },
    ],
    ['a: 1\na: 2', { key: 'line 2, column 1', expected: 'valid YAML: each key once (DUPLICATE_KEY)' }],
    ['clients: *x', { key: 'clients', expected: expect.stringContaining('reasonable depth') }],
    ['', { key: 'clients', expected: 'a mapping with a list of clients' }],
    ['clients: 1', { key: 'clients', expected: 'a list of clients' }],
    ['clients: [x]', { key: 'clients[0]', expected: expect.stringContaining('clientId, clientSecret') }],
    [
      'clients: [{clientId: 1, clientSecret: x}]',
      { key: 'clients[0].clientId', expected: expect.stringContaining('quote') },
    ],
    [
      'clients: [{clientId: a, clientSecret: x, audience: [1]}]',
      { key: 'clients[0].audience', expected: 'a list of strings' },
    ],
    [
      'clients: [{clientId: a, clientSecret: x, dpopBoundAccessTokens: "true"}]',
      { key: 'clients[0].dpopBoundAccessTokens', expected: 'true or false' },
    ],
    [
      'clients: []\nclient: 1',
      {
        key: 'client',
        code: 'unknown_key',
        expected: 'no such key; there is clients; did you mean "clients"?',
      },
    ],
    [
      'clients: [{clientId: a, clientSecret:S3CRET}]',
      {
        key: 'clients[0].clientSecret…',
        code: 'unknown_key',
        expected: expect.stringContaining('clientId, clientSecret'),
      },
    ],
  ])('%j is refused by its place', (text, problem) => {
    expect(problems(text)).toEqual([problem]);
  });
});

describe('a grant', () => {
  const defaults = { audience: 'issuer', lifetimeSeconds: 300 };
  const client = (definition: Partial<ClientDefinition>) =>
    defineClients([{ ...SHOP, ...definition }]).find('shop') as never;

  it.each([
    [{}, {}, { scopes: [], audience: ['issuer'], lifetimeSeconds: 300 }],
    [
      { scopes: ['a', 'b'], audience: ['x', 'y'], tokenLifetime: '9s' },
      {},
      { scopes: ['a', 'b'], audience: ['x', 'y'], lifetimeSeconds: 9 },
    ],
    [
      { scopes: ['a', 'b'], audience: ['x', 'y'] },
      { scopes: ['b'], audience: ['y'] },
      { scopes: ['b'], audience: ['y'] },
    ],
    [{}, { audience: ['issuer'] }, { audience: ['issuer'] }],
    [{ scopes: ['a'] }, { scopes: ['a', 'b'] }, { code: 'invalid_scope' }],
    [{ audience: ['x'] }, { audience: ['x', 'issuer'] }, { code: 'invalid_target' }],
    [{}, { audience: ['x'] }, { code: 'invalid_target' }],
  ])('to a client with %j that asks for %j is %j', (definition, request, grant) => {
    expect(decideGrant(client(definition), request, defaults)).toMatchObject(grant);
  });
});

it.each<[RefusalCode, number]>([
  ['invalid_request', 400],
  ['unsupported_grant_type', 400],
  ['invalid_scope', 400],
  ['invalid_target', 400],
  ['invalid_dpop_proof', 400],
  ['use_dpop_nonce', 400],
  ['invalid_client', 401],
  ['too_many_requests', 429],
  ['temporarily_unavailable', 503],
  ['server_error', 500],
])('a refusal by %s has the status %i', (code, status) => {
  const challenge = code === 'invalid_client' ? { 'WWW-Authenticate': 'Basic realm="dx"' } : {};
  expect(describeRefusal(new Refusal(code, 'why'), 'dx')).toEqual({
    status,
    headers: challenge,
    body: `{"error":"${code}","error_description":"why"}`,
  });
  expect(describeRefusal(new Refusal(code, 'why', 7), 'dx').headers).toEqual({
    ...challenge,
    'Retry-After': '7',
  });
});
