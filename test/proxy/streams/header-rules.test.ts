import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { HOP_FIELD } from '../../../src/platform/net/listen.ts';
import { type Fields, fieldValues, hasField, listMembers } from '../../../src/proxy/http/fields.ts';
import type { FieldSection } from '../../../src/proxy/streams/contract.ts';
import {
  ERROR_FIELD,
  hasPassed,
  offeredProtocols,
  type RequestBodyForm,
  responseFields,
  upstreamFields,
} from '../../../src/proxy/streams/header-rules.ts';

type ResponseFieldRules = Parameters<typeof responseFields>[1];

type UpstreamFieldRules = Parameters<typeof upstreamFields>[1];

const RULES: UpstreamFieldRules = {
  authority: 'api.example.com',
  authorization: 'Bearer injected',
  keepClientAuthorization: false,
  instanceId: 'me',
  upgrade: undefined,
};

/** What the rules always put behind the fields that pass. */
const OWN = [HOP_FIELD, 'me', 'authorization', 'Bearer injected'];

/** As the codec reads it. */
function section(fields: Fields): FieldSection {
  const connectionOptions = listMembers(fields, 'connection').map((option) => option.toLowerCase());
  return { fields, connectionOptions };
}

type Rules = Partial<UpstreamFieldRules & { readonly body: RequestBodyForm }>;

function sent(fields: Fields, { body = 'plain', ...rules }: Rules = {}): Fields {
  return upstreamFields(section(fields), { ...RULES, ...rules }, body);
}

describe('the fields of a forwarded request', () => {
  it.each<[string, Fields, Rules, Fields]>([
    [
      'Host becomes the upstream’s, in its place',
      ['A', '1', 'HOST', 'app', 'B', '2'],
      {},
      ['A', '1', 'HOST', 'api.example.com', 'B', '2', ...OWN],
    ],
    ['Host is added if it is missing', ['A', '1'], {}, ['host', 'api.example.com', 'A', '1', ...OWN]],
    [
      'order, case and repetition are kept',
      ['host', 'a', 'X-b', '1', 'x-B', '2', 'X-b', '1'],
      {},
      ['host', 'api.example.com', 'X-b', '1', 'x-B', '2', 'X-b', '1', ...OWN],
    ],
    [
      'hop-by-hop fields stay',
      [
        'host',
        'a',
        'Connection',
        'keep-alive',
        'Keep-Alive',
        '1',
        'Proxy-Connection',
        'x',
        'Proxy-Authorization',
        'Basic x',
        'Transfer-Encoding',
        'chunked',
        'Upgrade',
        'x',
        'TE',
        'gzip',
      ],
      {},
      ['host', 'api.example.com', ...OWN],
    ],
    [
      'nominated fields stay',
      ['host', 'a', 'Connection', 'X-One ,, x-TWO', 'x-one', '1', 'X-Two', '2', 'X-Three', '3'],
      {},
      ['host', 'api.example.com', 'X-Three', '3', ...OWN],
    ],
    [
      'a second Connection nominates too',
      ['host', 'a', 'connection', 'close', 'connection', 'x-one', 'x-one', '1'],
      {},
      ['host', 'api.example.com', ...OWN],
    ],
    [
      'every client Authorization gives way to one',
      ['host', 'a', 'Authorization', 'Basic 1', 'AUTHORIZATION', 'Basic 2'],
      {},
      ['host', 'api.example.com', ...OWN],
    ],
    [
      'none is injected when there is none',
      ['host', 'a', 'Authorization', 'Basic 1'],
      { authorization: undefined },
      ['host', 'api.example.com', HOP_FIELD, 'me'],
    ],
    [
      'a kept Authorization passes alone',
      ['host', 'a', 'Authorization', 'Basic 1'],
      { keepClientAuthorization: true },
      ['host', 'api.example.com', 'Authorization', 'Basic 1', HOP_FIELD, 'me'],
    ],
    [
      'a kept Authorization cannot be nominated away',
      ['host', 'a', 'Connection', 'authorization', 'Authorization', 'Basic 1'],
      { keepClientAuthorization: true },
      ['host', 'api.example.com', 'Authorization', 'Basic 1', HOP_FIELD, 'me'],
    ],
    [
      'framing, Host and the loop guard cannot be nominated away',
      [
        'host',
        'a',
        'Connection',
        `content-length, host, ${HOP_FIELD}`,
        'Content-Length',
        '5',
        HOP_FIELD,
        'other',
      ],
      {},
      [
        'host',
        'api.example.com',
        'Content-Length',
        '5',
        HOP_FIELD,
        'other, me',
        'authorization',
        'Bearer injected',
      ],
    ],
    [
      'hops are joined in order',
      [HOP_FIELD, 'a, b', 'host', 'x', HOP_FIELD, 'c', HOP_FIELD, ''],
      {},
      ['host', 'api.example.com', HOP_FIELD, 'a, b, c, me', 'authorization', 'Bearer injected'],
    ],
    [
      'te: trailers is remade',
      ['host', 'a', 'TE', 'gzip, Trailers'],
      {},
      ['host', 'api.example.com', 'te', 'trailers', 'connection', 'te', ...OWN],
    ],
    [
      'a chunked body is framed anew, and Trailer stays with it',
      ['host', 'a', 'Trailer', 'x'],
      { body: 'chunked' },
      ['host', 'api.example.com', 'Trailer', 'x', 'transfer-encoding', 'chunked', ...OWN],
    ],
    [
      'Trailer that is nominated stays',
      ['host', 'a', 'Connection', 'trailer, x-one', 'Trailer', 'x'],
      { body: 'chunked' },
      ['host', 'api.example.com', 'transfer-encoding', 'chunked', ...OWN],
    ],
    [
      'Trailer without chunks stays',
      ['host', 'a', 'Trailer', 'x', 'Content-Length', '1'],
      {},
      ['host', 'api.example.com', 'Content-Length', '1', ...OWN],
    ],
    [
      'an empty body has Content-Length: 0 if the method needs it',
      ['host', 'a'],
      { body: 'empty' },
      ['host', 'api.example.com', 'content-length', '0', ...OWN],
    ],
    [
      'an empty body is said once',
      ['host', 'a', 'Content-Length', '0'],
      { body: 'empty' },
      ['host', 'api.example.com', 'Content-Length', '0', ...OWN],
    ],
    [
      'an upgrade is remade',
      ['host', 'a', 'Connection', 'Upgrade', 'Upgrade', 'websocket'],
      { upgrade: 'websocket' },
      ['host', 'api.example.com', 'upgrade', 'websocket', 'connection', 'upgrade', ...OWN],
    ],
  ])('%s', (_, fields, rules, expected) => {
    expect(sent(fields, rules)).toEqual(expected);
  });

  it('have exactly one Authorization, one Host and one hop field, whatever comes', () => {
    const name = fc.constantFrom(
      'Authorization',
      'authorization',
      'Host',
      'Connection',
      'X-A',
      HOP_FIELD,
      'te',
      'Upgrade',
    );
    const value = fc.constantFrom(
      '',
      'x-a',
      'authorization',
      'host, x-a',
      HOP_FIELD,
      'trailers',
      ',,',
      'close',
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value)), (fields) => {
        const out = sent(fields.flat());
        expect(fieldValues(out, 'authorization')).toEqual(['Bearer injected']);
        expect(new Set(fieldValues(out, 'host'))).toEqual(new Set(['api.example.com']));
        expect(fieldValues(out, 'host')).toHaveLength(1);
        expect(hasPassed(out, 'me')).toBe(true);
      }),
    );
  });

  it('include every end-to-end field in order', () => {
    const name = fc.stringMatching(/^x-[a-z]{1,8}$/);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.string())), (fields) => {
        expect(sent(['host', 'a', ...fields.flat()])).toEqual([
          'host',
          'api.example.com',
          ...fields.flat(),
          ...OWN,
        ]);
      }),
    );
  });
});

describe('the loop check', () => {
  it.each([
    [['token-sidecar-hop', 'me'], true],
    [['Token-Sidecar-Hop', 'a ,me, b'], true],
    [['token-sidecar-hop', 'a', 'token-sidecar-hop', 'me'], true],
    [['token-sidecar-hop', 'me-too'], false],
    [['x', 'me'], false],
    [[], false],
  ])('%j: %s', (fields, passed) => {
    expect(hasPassed(fields, 'me')).toBe(passed);
  });
});

describe('the fields of a forwarded answer', () => {
  it.each<[string, Fields, number, ResponseFieldRules['body'], Fields]>([
    [
      'Set-Cookie stays repeated',
      ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'],
      200,
      'plain',
      ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'],
    ],
    [
      'hop-by-hop and nominated fields stay',
      ['Connection', 'close, X-A', 'X-A', '1', 'Transfer-Encoding', 'chunked', 'Upgrade', 'h2c', 'X-B', '2'],
      200,
      'chunked',
      ['X-B', '2', 'transfer-encoding', 'chunked'],
    ],
    [
      'content-length cannot be nominated away',
      ['Connection', 'content-length', 'Content-Length', '3'],
      200,
      'plain',
      ['Content-Length', '3'],
    ],
    [
      'the proxy’s own fields never come from upstream',
      [ERROR_FIELD, 'bad_request', 'Token-Sidecar-Hop', 'x', 'A', '1'],
      200,
      'plain',
      ['A', '1'],
    ],
    ['no length in a 204', ['Content-Length', '3'], 204, 'plain', []],
    ['a length that only tells of a body', ['Content-Length', '3'], 304, 'plain', ['Content-Length', '3']],
    ['Trailer without chunks stays', ['Trailer', 'x'], 200, 'plain', []],
    [
      'Trailer with chunks passes',
      ['Trailer', 'x'],
      200,
      'chunked',
      ['Trailer', 'x', 'transfer-encoding', 'chunked'],
    ],
    ['an empty 205 is said to be', ['Content-Length', '0'], 205, 'plain', ['content-length', '0']],
    ['Trailer in frames passes', ['Trailer', 'x', 'Connection', 'close'], 200, 'framed', ['Trailer', 'x']],
  ])('%s', (_, fields, status, body, expected) => {
    expect(responseFields(section(fields), { status, body })).toEqual(expected);
  });
});

describe('protocols offered by Upgrade', () => {
  it.each<[string, Fields, string | undefined]>([
    ['asked for', ['Connection', 'keep-alive, Upgrade', 'Upgrade', 'SPDY/3.1'], 'SPDY/3.1'],
    ['several', ['connection', 'upgrade', 'upgrade', 'a, b', 'upgrade', 'c'], 'a, b, c'],
    ['not named in Connection', ['upgrade', 'websocket'], undefined],
    ['none', ['connection', 'upgrade'], undefined],
    ['an empty one', ['connection', 'upgrade', 'upgrade', ' ,'], undefined],
  ])('%s', (_, fields, protocols) => {
    expect(offeredProtocols(section(fields))).toBe(protocols);
  });
});

it('members of list-based fields are taken from every line, trimmed, without empty ones', () => {
  expect(listMembers(['A', ' x,, Y ,', 'b', 'no', 'a', 'z'], 'a')).toEqual(['x', 'Y', 'z']);
});

it('a field is found in any case, and not by part of another name', () => {
  const fields = ['Idempotency-Key', '1', 'authorizatioN', 'Basic YQ=='];
  expect(hasField(fields, 'authorization')).toBe(true);
  expect(hasField(fields, 'idempotency-key')).toBe(true);
  expect(hasField(fields, 'host')).toBe(false);
  expect(hasField([], 'authorization')).toBe(false);
});
