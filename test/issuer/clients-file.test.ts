import { describe, expect, it } from 'vitest';
import { parseClients } from '../../src/issuer/client-sources.ts';
import { hashSecret } from '../../src/issuer/secret-hashing.ts';

describe('parseClients', () => {
  it('reads all that a client may have', async () => {
    const secretHash = await hashSecret('x', { ln: 1, r: 1, p: 1 });
    const clients = parseClients(`
      clients:
        - clientId: shop
          clientSecret: s3cret
          scopes: [read, write, read]
          audience: [payments]
          tokenLifetime: 60s
        - clientId: bank
          secretHash: ${secretHash}
    `);
    expect(clients.size).toBe(2);
    expect(clients.find('shop')).toMatchObject({
      secrets: [{ kind: 'sha256' }],
      scopes: ['read', 'write'],
      audience: ['payments'],
      tokenLifetimeSeconds: 60,
    });
    expect(clients.find('bank')).toMatchObject({ secrets: [{ kind: 'scrypt' }], scopes: [], audience: [] });
    expect(clients.find('bank')).not.toHaveProperty('tokenLifetimeSeconds');
  });

  it('takes JSON, and no clients', () => {
    expect(parseClients('{"clients": [{"clientId": "a", "clientSecret": "b"}]}').size).toBe(1);
    expect(parseClients('clients: []').size).toBe(0);
  });

  const client = (fields: string): string => `clients: [{ clientId: a, clientSecret: hunter2, ${fields} }]`;
  const wrong: [name: string, text: string, keys: readonly string[]][] = [
    ['an empty file', '', ['clients']],
    ['a list at the top', '- clientId: a', ['clients']],
    ['clients that are no list', 'clients: { a: b }', ['clients']],
    ['a client that is a word', 'clients: [{ clientId: a, clientSecret: hunter2 }, hunter2]', ['clients[1]']],
    ['a client that is a list', 'clients: [[hunter2]]', ['clients[0]']],
    ['a client that is nothing', 'clients: [null]', ['clients[0]']],
    ['an unknown key at the top', 'clients: []\nclient: []', ['client']],
    ['an unknown key', client('scope: read'), ['clients[0].scope']],
    ['no id and no secret', 'clients: [{}]', ['clients[0].clientId', 'clients[0].clientSecret']],
    [
      'two forms of a second secret',
      client('secondClientSecret: b, secondSecretHash: hunter2'),
      ['clients[0].secondClientSecret', 'clients[0].secondSecretHash'],
    ],
    ['an empty second secret', client('secondClientSecret: ""'), ['clients[0].secondClientSecret']],
    [
      'a second secret alone',
      'clients: [{ clientId: a, secondClientSecret: hunter2 }]',
      ['clients[0].clientSecret'],
    ],
    ['an empty secret', 'clients: [{ clientId: a, clientSecret: "" }]', ['clients[0].clientSecret']],
    ['both secret and hash', client('secretHash: hunter2'), ['clients[0].clientSecret']],
    ['a hash that is none', 'clients: [{ clientId: a, secretHash: hunter2 }]', ['clients[0].secretHash']],
    ['a number for a secret', 'clients: [{ clientId: a, clientSecret: 12345 }]', ['clients[0].clientSecret']],
    ['a string for a list', client('scopes: read'), ['clients[0].scopes']],
    ['a scope with a space', client('scopes: ["a b"]'), ['clients[0].scopes']],
    ['an empty audience', client('audience: [""]'), ['clients[0].audience']],
    ['a lifetime without a unit', client('tokenLifetime: "60"'), ['clients[0].tokenLifetime']],
    ['a lifetime of half a second', client('tokenLifetime: 500ms'), ['clients[0].tokenLifetime']],
    ['a lifetime of zero', client('tokenLifetime: 0s'), ['clients[0].tokenLifetime']],
    ['a lifetime of a year', client('tokenLifetime: 365d'), ['clients[0].tokenLifetime']],
    ['a repeated key', client('clientSecret: hunter2'), [expect.stringContaining('line 1') as never]],
    ['broken YAML', 'clients: [{ clientSecret: "hunter2', [expect.stringContaining('line 1') as never]],
    ['an unknown tag', client('audience: !x [a]'), [expect.stringContaining('line 1') as never]],
    ['an alias of nothing', client('audience: *x'), [expect.any(String) as never]],
    ['endless nesting', '['.repeat(50_000), [expect.any(String) as never]],
    [
      'a client id used twice',
      'clients: [{ clientId: a, clientSecret: hunter2 }, { clientId: a, clientSecret: x }]',
      ['clients[1]'],
    ],
  ];
  it.each(wrong)('refuses %s, by its place and without a secret', (_name, text, keys) => {
    let thrown: unknown;
    try {
      parseClients(text);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ code: 'configuration' });
    const { problems } = thrown as { problems: readonly { key: string }[] };
    expect(problems.slice(0, keys.length).map(({ key }) => key)).toEqual(keys);
    expect(JSON.stringify(problems)).not.toMatch(/hunter2|12345/);
  });

  it('suggests the key that was meant', () => {
    expect(() => parseClients(client('tokenLifetme: 60s'))).toThrow('did you mean "tokenLifetime"?');
  });
});
