import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Injection } from '../../../src/config/config.ts';
import { makeLasting } from '../../../src/proxy/http/lasting-fields.ts';
import type { IncomingRequest } from '../../../src/proxy/streams/contract.ts';
import { TokenPlacement } from '../../../src/proxy/streams/token-placement.ts';

const KEY: Injection = { into: 'header', header: 'X-Api-Key' };
const QUERY: Injection = { into: 'query', parameter: 'access_token' };
const PLACEHOLDER: Injection = { into: 'placeholder', header: 'X-Api-Key', placeholder: '{{crm}}' };

function incoming(fields: string[], rest: Partial<IncomingRequest> = {}): IncomingRequest {
  return {
    protocol: 'http1',
    method: 'GET',
    target: '/',
    targetForm: 'origin',
    host: 'app.test',
    fields,
    contentLength: undefined,
    connectionOptions: [],
    ...rest,
  };
}

describe('token placement in fields', () => {
  it.each([
    ['the name of the token', ['X-Api-Key', 'own']],
    ['it in another case, twice', ['x-api-key', 'own', 'X-API-KEY', 'own']],
    ['an underscore for a dash', ['X_Api-Key', 'own']],
    ['Authorization', ['AUTHORIZATION', 'Basic own']],
    ['an empty value', ['x-api-key', '']],
  ])('replaces the app’s field with %s', (_, fields) => {
    const placement = new TokenPlacement([KEY]);
    const request = incoming(['a', '1', ...fields, 'b', '2'], { connectionOptions: ['x-api-key', 'b'] });
    expect(placement.areOwnCredentials(request)).toBe(true);
    const placed = placement.place(request, 'Bearer tok');
    expect(placed.fields).toEqual(['a', '1', 'b', '2', 'X-Api-Key', 'tok']);
    expect(placed.connectionOptions).toEqual(['b']);
    expect(placed.neverIndexed).toEqual(['x-api-key']);
    // Where no token is to go, what would stand in its place goes all the same.
    expect(placement.place(request, undefined).fields).toEqual(['a', '1', 'b', '2']);
    expect(placement.permitted(['sum', '1', ...fields])).toEqual(['sum', '1']);
  });

  it('keeps the app’s never-indexed marks', () => {
    const request = incoming([], { neverIndexed: ['x-secret'] });
    expect(new TokenPlacement([KEY]).place(request, 'Bearer t').neverIndexed).toEqual([
      'x-secret',
      'x-api-key',
    ]);
  });

  it('of a repeated request is done once for each token', () => {
    const fields = ['a', '1'];
    makeLasting(fields);
    const placement = new TokenPlacement([KEY]);
    const first = placement.place(incoming(fields), 'Bearer one');
    expect(placement.place(incoming(fields), 'Bearer one').fields).toBe(first.fields);
    expect(placement.place(incoming(fields), 'Bearer two').fields).toContain('two');
    expect(placement.place(incoming(fields), undefined).fields).toEqual(['a', '1']);
  });
});

describe('a placeholder', () => {
  const placement = new TokenPlacement([PLACEHOLDER]);
  it.each([
    ['{{crm}}', 'tok'],
    ['Token {{crm}}', 'Token tok'],
    ['{{crm}} ', undefined],
    ['a b {{crm}}', undefined],
    ['a={{crm}}', 'a={{crm}}'],
    ['own', undefined],
  ])('%s becomes %s', (value, expected) => {
    const request = incoming(['x-api-key', value]);
    const { fields } = placement.place(request, 'Bearer tok');
    const swapped = expected !== undefined && expected !== value;
    expect(fields).toEqual(swapped ? ['x-api-key', expected] : []);
    expect(placement.areOwnCredentials(request)).toBe(!swapped);
  });

  it('that occurs in two equal names is replaced once, and removed without a token', () => {
    const request = incoming(['x-api-key', '{{crm}}', 'x_api_key', '{{crm}}', 'authorization', 'own']);
    expect(placement.place(request, 'Bearer tok').fields).toEqual(['x-api-key', 'tok']);
    expect(placement.place(request, undefined).fields).toEqual([]);
  });
});

describe('token placement in a query parameter', () => {
  const placement = new TokenPlacement([QUERY]);
  it.each([
    ['/', '/?access_token=t%2F1'],
    ['/a?', '/a?access_token=t%2F1'],
    ['/a?b=1', '/a?b=1&access_token=t%2F1'],
    ['/a?b=1&', '/a?b=1&access_token=t%2F1'],
    ['*', '*'],
    ['/a?access_token=own', '/a?access_token=t%2F1'],
    ['/a?access_token', '/a?access_token=t%2F1'],
    ['/a?b&access_token=own&c', '/a?b&c&access_token=t%2F1'],
    ['/a?Access_Token=own&access%5Ftoken=own', '/a?access_token=t%2F1'],
    ['/a?b=1;access_token=own', '/a?b=1&access_token=t%2F1'],
    ['/a?access_token[]=own&access.token=own&+access_token=own', '/a?access_token=t%2F1'],
    ['/a?access_token%00=own', '/a?access_token=t%2F1'],
    ['/a?my_access_token=1&b=access_token=2', '/a?my_access_token=1&b=access_token=2&access_token=t%2F1'],
    ['/a?%zz=1', '/a?%zz=1&access_token=t%2F1'],
  ])('turns %s into %s', (target, expected) => {
    expect(placement.target(target, 'Bearer t/1')).toBe(expected);
  });

  it('recognises the app’s own parameter, removes it without a token, and is never indexed', () => {
    expect(placement.areOwnCredentials(incoming([], { target: '/?access_token=own' }))).toBe(true);
    expect(placement.areOwnCredentials(incoming([], { target: '/?other=own' }))).toBe(false);
    expect(placement.target('/?access_token=own&b', undefined)).toBe('/?b');
    expect(placement.place(incoming([]), 'Bearer t').neverIndexed).toEqual([':path']);
  });

  it('leaves the parameter exactly once, whatever the query', () => {
    const piece = fc.constantFrom(
      'access_token',
      'ACCESS%5fTOKEN',
      '=',
      '&',
      ';',
      '?',
      '%',
      'x',
      '[',
      ']',
      '.',
      '+',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const sent = placement.target(`/?${pieces.join('')}`, 'Bearer tok');
        const values = new URL(`http://a${sent}`).searchParams.getAll('access_token');
        expect(values).toEqual(['tok']);
      }),
    );
  });
});
