import { expect, it } from 'vitest';
import { countedDown, lastHopAnswer } from '../../../src/proxy/transaction/local-reply.ts';

it.each<[string, string[], boolean, string[]]>([
  ['OPTIONS', ['Max-Forwards', '0'], true, ['Max-Forwards', '0']],
  ['TRACE', ['max-forwards', '00'], true, ['max-forwards', '00']],
  ['TRACE', ['a', '5', 'MAX-FORWARDS', '7'], false, ['a', '5', 'MAX-FORWARDS', '6']],
  ['TRACE', ['Max-Forwards', '3', 'Max-Forwards', '0'], true, ['Max-Forwards', '3', 'Max-Forwards', '0']],
  ['OPTIONS', ['Max-Forwards', '3', 'Max-Forwards', '2'], false, ['Max-Forwards', '2', 'Max-Forwards', '1']],
  ['OPTIONS', ['Max-Forwards', '999999999999999'], false, ['Max-Forwards', '999999999999998']],
  ['OPTIONS', ['Max-Forwards', '1000000000000000'], false, ['Max-Forwards', '1000000000000000']],
  ['OPTIONS', ['Max-Forwards', 'x1'], false, ['Max-Forwards', 'x1']],
  [
    'OPTIONS',
    ['Max-Forwards', '1x', 'Max-Forwards', '5'],
    false,
    ['Max-Forwards', '1x', 'Max-Forwards', '4'],
  ],
  ['OPTIONS', ['Max-Forwards', ''], false, ['Max-Forwards', '']],
  ['OPTIONS', [], false, []],
  ['GET', ['Max-Forwards', '0'], false, ['Max-Forwards', '0']],
  ['GET', ['Max-Forwards', '5'], false, ['Max-Forwards', '5']],
])('the last hop of %s with %j is this one: %s, with fields %j after that', (method, fields, last, after) => {
  const before = [...fields];
  expect(countedDown({ method, fields })).toEqual(last ? undefined : after);
  expect(fields).toEqual(before);
});

it('the last hop answers TRACE with the received request without credentials', () => {
  const fields = [
    'Host',
    'a',
    'AUTHORIZATION',
    'Basic x',
    'X',
    'cookie',
    'Cookie',
    'y',
    'Proxy-Authorization',
    'z',
    'DPoP',
    'p',
    'cookies',
    '1',
  ];
  const body = 'TRACE /x HTTP/1.1\r\nHost: a\r\nX: cookie\r\ncookies: 1\r\n\r\n';
  expect(lastHopAnswer({ method: 'TRACE', target: '/x', fields })).toEqual({
    status: 200,
    reason: 'OK',
    fields: [
      'content-type',
      'message/http',
      'content-length',
      String(body.length),
      'cache-control',
      'no-store',
    ],
    body,
    closes: false,
  });
});

it('the last hop answers OPTIONS with an empty 200', () => {
  expect(lastHopAnswer({ method: 'OPTIONS', target: '*', fields: ['Host', 'a'] })).toEqual({
    status: 200,
    reason: 'OK',
    fields: ['content-length', '0', 'cache-control', 'no-store'],
    body: '',
    closes: false,
  });
});
