import { describe, expect, test } from 'vitest';
import { readRequest } from '../../../src/proxy/http2/messages.ts';

const RULES = { targetBytes: 100 };

/** Lines `name: value`, of pseudo-fields as well. */
function read(lines: readonly string[], rules = RULES): ReturnType<typeof readRequest> {
  const fields = lines.flatMap((line) => {
    const colon = line.indexOf(':', 1);
    return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
  });
  return readRequest(fields, rules);
}

const GET = [':method: GET', ':scheme: http', ':authority: a.b:80', ':path: /x?y'];
const CONNECT = [':method: CONNECT', ':authority: a.b:443'];
const WEBSOCKET = [
  ':method: CONNECT',
  ':protocol: websocket',
  ':scheme: https',
  ':path: /',
  ':authority: a.b',
];

function without(lines: readonly string[], ...names: string[]): string[] {
  return lines.filter((line) => !names.some((name) => line.startsWith(`${name}: `)));
}

describe('HTTP/2 requests', () => {
  test('are read with pseudo-header fields in any order', () => {
    const expected = {
      kind: 'ordinary',
      method: 'GET',
      scheme: 'http',
      authority: 'a.b:80',
      path: '/x?y',
      fields: ['accept', '*/*', 'x', '', 'x', 'a\tb'],
      contentLength: undefined,
    };
    const others = ['accept: */*', 'x: ', 'x: a\tb'];
    expect(read([...GET, ...others])).toEqual(expected);
    expect(read([...GET.toReversed(), ...others])).toEqual(expected);
  });

  test('may name their authority in host instead or as well', () => {
    expect(read([...without(GET, ':authority'), 'a: b', 'host: c'])).toMatchObject({
      authority: 'c',
      fields: ['a', 'b'],
    });
    for (const host of ['a.b', 'A.B:80', 'a.b:', 'a.b:80']) {
      expect(read([...GET, `host: ${host}`])).toMatchObject({ authority: 'a.b:80', fields: [] });
    }
  });

  test('with OPTIONS may have the target *', () => {
    expect(read([':method: OPTIONS', ':path: *', ...without(GET, ':method', ':path')])).toMatchObject({
      path: '*',
    });
  });

  test('with another scheme are read; whether they are served is decided elsewhere', () => {
    expect(read([...without(GET, ':scheme'), ':scheme: Coap+tcp'])).toMatchObject({ scheme: 'coap+tcp' });
  });

  test('may repeat an equal content-length', () => {
    expect(read([...GET, 'content-length: 007'])).toMatchObject({
      contentLength: 7,
      fields: ['content-length', '7'],
    });
  });

  test('may accept trailers with te', () => {
    expect(read([...GET, 'te: Trailers'])).toMatchObject({ fields: ['te', 'Trailers'] });
  });

  test('with CONNECT have only an authority', () => {
    expect(read([...CONNECT, 'a: b'])).toEqual({
      kind: 'connect',
      method: 'CONNECT',
      authority: 'a.b:443',
      fields: ['a', 'b'],
      contentLength: undefined,
    });
    expect(read([...CONNECT, 'host: A.b:443'])).toMatchObject({ fields: [] });
  });
});

describe('a malformed HTTP/2 request', () => {
  const at100 = `/${'x'.repeat(99)}`;
  test.each([
    // Names and values (§8.2.1)
    ['name_malformed', [...GET, 'Accept: x']],
    ['name_malformed', [...GET, 'a b: x']],
    ['name_malformed', [...GET, 'a\x80: x']],
    ['name_malformed', [...GET, 'a(: x']],
    ['value_malformed', [...GET, 'a: x\r']],
    ['value_malformed', [...GET, 'a: x\ny']],
    ['value_malformed', [...GET, 'a: \0']],
    ['value_malformed', [...GET, 'a: \x7f']],
    ['value_malformed', [...GET, 'a: x ']],
    ['value_malformed', [...GET, 'a:  x']],
    ['value_malformed', [...GET, 'a: \tx']],
    ['value_malformed', [...GET, 'a:  ']],
    // Fields of HTTP/1.1 connections (§8.2.2)
    ['connection_specific', [...GET, 'connection: close']],
    ['connection_specific', [...GET, 'keep-alive: timeout=1']],
    ['connection_specific', [...GET, 'proxy-connection: close']],
    ['connection_specific', [...GET, 'transfer-encoding: chunked']],
    ['connection_specific', [...GET, 'upgrade: websocket']],
    ['te_malformed', [...GET, 'te: trailers, deflate']],
    ['te_malformed', [...GET, 'te: gzip']],
    ['te_malformed', [...GET, 'te: ']],
    // Pseudo-fields (§8.3)
    ['pseudo_unknown', [...GET, ':status: 200']],
    ['pseudo_unknown', [...GET, ':foo: x']],
    ['pseudo_late', [...without(GET, ':path'), 'a: b', ':path: /']],
    ['pseudo_late', [...GET, 'a: b', ':foo: x']],
    ['pseudo_repeated', [...GET, ':method: GET']],
    ['pseudo_repeated', [...GET, ':scheme: http']],
    ['pseudo_repeated', [...GET, ':authority: a.b:80']],
    ['pseudo_repeated', [...GET, ':path: /']],
    ['pseudo_missing', without(GET, ':method')],
    ['pseudo_missing', without(GET, ':scheme')],
    ['pseudo_missing', without(GET, ':path')],
    ['pseudo_missing', []],
    ['method_malformed', [...without(GET, ':method'), ':method: ']],
    ['method_malformed', [...without(GET, ':method'), ':method: G T']],
    ['method_malformed', [...without(GET, ':method'), `:method: ${'M'.repeat(33)}`]],
    ['method_lookalike', [...without(GET, ':method'), ':method: Head']],
    ['method_lookalike', [...without(GET, ':method'), ':method: connect']],
    ['scheme_malformed', [...without(GET, ':scheme'), ':scheme: ']],
    ['scheme_malformed', [...without(GET, ':scheme'), ':scheme: h ttp']],
    ['authority_missing', without(GET, ':authority')],
    ['authority_malformed', [...without(GET, ':authority'), ':authority: ']],
    ['authority_malformed', [...without(GET, ':authority'), ':authority: u@a']],
    ['authority_malformed', [...without(GET, ':authority'), ':authority: a/b']],
    ['host_malformed', [...GET, 'host: a.b:80', 'host: a.b:80']],
    ['host_malformed', [...GET, 'host: u@a.b']],
    ['host_differs', [...GET, 'host: a.c']],
    ['host_differs', [...GET, 'host: a.b:443']],
    ['host_differs', [...GET, 'host: a.b:8']],
    ['path_malformed', [...without(GET, ':path'), ':path: ']],
    ['path_malformed', [...without(GET, ':path'), ':path: x']],
    ['path_malformed', [...without(GET, ':path'), ':path: *']],
    ['path_malformed', [...without(GET, ':path'), ':path: /#f']],
    ['path_malformed', [...without(GET, ':path'), ':path: /a b']],
    ['path_malformed', [...without(GET, ':path'), ':path: http://a/']],
    ['path_too_long', [...without(GET, ':path'), `:path: ${at100}y`]],
    // CONNECT (§8.5, RFC 8441)
    ['pseudo_missing', [...CONNECT, ':path: /']],
    ['pseudo_missing', [...CONNECT, ':scheme: http']],
    ['pseudo_missing', without(CONNECT, ':authority')],
    ['pseudo_missing', [...without(CONNECT, ':authority'), 'host: a:443']],
    ['authority_malformed', [':method: CONNECT', ':authority: a.b']],
    ['host_differs', [...CONNECT, 'host: a.b']],
    ['body_not_allowed', [...CONNECT, 'content-length: 0']],
    ['pseudo_unknown', [...GET, ':protocol: websocket']],
    ['pseudo_unknown', WEBSOCKET],
    // Length (§8.1.1)
    ['length_malformed', [...GET, 'content-length: x']],
    ['length_malformed', [...GET, 'content-length: ']],
    ['length_malformed', [...GET, 'content-length: +1']],
    ['length_malformed', [...GET, 'content-length: 1, 1']],
    ['length_malformed', [...GET, 'content-length: 9007199254740993']],
    ['length_repeated', [...GET, 'content-length: 1', 'content-length: 1']],
    ['length_repeated', [...GET, 'content-length: 1', 'content-length: 2']],
    ['length_lookalike', [...GET, 'content_length: 1']],
    ['length_lookalike', [...GET, 'transfer_encoding: chunked']],
  ] as const)('%s: %j', (reason, lines) => {
    expect(read(lines)).toBe(reason);
  });

  test('a field name without octets', () => {
    expect(readRequest([':method', 'GET', '', 'x'], RULES)).toBe('name_malformed');
  });

  test('but not a path of exactly the maximal length', () => {
    expect(read([...without(GET, ':path'), `:path: ${at100}`])).toMatchObject({ path: at100 });
  });
});
