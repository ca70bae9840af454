import { describe, expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

async function load(inject: string, other = 'null'): Promise<Config> {
  const text = `
credentials: [{ name: default, authUrl: https://sso.example.com }]
routes:
  - { name: a, upstream: https://a.example.com, match: { pathPrefix: /a }, inject: ${inject} }
  - { name: b, upstream: https://b.example.com${other === 'null' ? '' : `, inject: ${other}`} }
forwardProxy: { allow: [{ host: a.example.com, inject: ${inject} }] }
`;
  const path = await temporaryFile('token-sidecar.yaml', text);
  return await loadConfig({ config: { key: '--config', text: path } });
}

it.each([
  ['{ header: X-Api-Key }', [{ into: 'header', header: 'X-Api-Key' }]],
  ['{ header: X-Api-Key, scheme: Token }', [{ into: 'header', header: 'X-Api-Key', scheme: 'Token' }]],
  ['{ scheme: token }', [{ into: 'header', header: 'Authorization', scheme: 'token' }]],
  ['{ scheme: "" }', [{ into: 'header', header: 'Authorization' }]],
  ['{ query: access_token }', [{ into: 'query', parameter: 'access_token' }]],
  ['{ placeholder: "{{crm}}" }', [{ into: 'placeholder', header: 'Authorization', placeholder: '{{crm}}' }]],
  [
    '[{ header: authorization }, { header: X-Key }]',
    [
      { into: 'header', header: 'authorization', scheme: 'Bearer' },
      { into: 'header', header: 'X-Key' },
    ],
  ],
])('%s is taken, for routes and hosts alike', async (inject, expected) => {
  const { routes, forwardProxy } = await load(inject);
  expect(routes[0]?.inject).toEqual(expected);
  expect(routes[1]?.inject).toBeUndefined();
  expect(forwardProxy?.allow[0]?.inject).toEqual(expected);
});

it.each(['{ header: Authorization, scheme: Bearer }', '{ header: authorization }', '{ scheme: Bearer }'])(
  '%s is what is done anyway',
  async (inject) => {
    expect((await load(inject)).routes[0]).not.toHaveProperty('inject');
  },
);

describe('refuses, and names the key', () => {
  it.each([
    [
      '{ heder: X-Key }',
      'inject.heder: expected one of the keys header, scheme, placeholder, query; did you',
    ],
    ['{ header: "a b" }', 'inject.header: "a b": expected the name of a header'],
    ['{ header: 5 }', 'inject.header: "5": expected the name of a header'],
    ['{ scheme: "a b" }', 'inject.scheme: "a b": expected a word'],
    ['{ placeholder: "{{a b}}" }', 'inject.placeholder: "{{a b}}": expected a text'],
    ['{ placeholder: abc }', 'inject.placeholder: "abc": expected a text of 4'],
    ['{ query: "a=b" }', 'inject.query: "a=b": expected the name of a query parameter'],
    ['{}', 'inject: expected header, placeholder or query'],
    ['[]', 'inject: expected header, placeholder or query'],
    ['Bearer', 'inject: expected a mapping, or a list'],
    ['[{ header: 5 }]', 'inject[0].header: "5": expected the name of a header'],
    ['[{ heder: X-Key }]', 'inject[0].heder: expected one of the keys'],
    [
      '[{ header: X-Key }, { header: x_key }]',
      'inject[1].header: "x_key": expected another place than that of',
    ],
    ['[{ query: key }, { query: KEY }]', 'inject[1].query: "KEY": expected another place'],
    ['[{ placeholder: "{{a}}" }, {}]', 'inject[1]: expected header'],
    ['{ query: key, header: X-Key }', 'inject.header: "X-Key": expected nothing beside query'],
    [
      '{ placeholder: "{{a}}", scheme: Bearer }',
      'inject.scheme: "Bearer": expected nothing beside placeholder',
    ],
  ])('%s', async (inject, message) => {
    await expect(load(inject)).rejects.toThrow(message);
  });

  it.each([
    'Host',
    'Connection',
    'TE',
    'Transfer-Encoding',
    'Content-Length',
    'Proxy-Authorization',
    'Cookie',
  ])('a header that may not hold a token: %s', async (header) => {
    await expect(load(`{ header: ${header} }`)).rejects.toThrow(
      `routes[0].inject.header: "${header}": expected a header that may hold a token alone`,
    );
  });

  it('nine places', async () => {
    const nine = Array.from({ length: 9 }, (_, n) => `{ header: X-${n} }`).join(', ');
    await expect(load(`[${nine}]`)).rejects.toThrow('1 to 8');
  });

  it('a placeholder that is a part of another', async () => {
    await expect(load('{ placeholder: "{{a}}" }', '{ placeholder: "x{{a}}" }')).rejects.toThrow(
      'routes[0].inject.placeholder: "{{a}}": expected a text that is no part of another placeholder (x{{a}})',
    );
  });
});
