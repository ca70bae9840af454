/**
 * Streams of HTTP/1.1 messages for the differential fuzzer: mostly legal ones from a grammar, with odd choices mixed
 * in, then mutated with the octets and lines that parsers are known to disagree on.
 */

import type { MessageKind } from '../../../../src/proxy/http1/message-refused.ts';
import type { Random } from './random.ts';

export interface FuzzCase {
  readonly kind: MessageKind;
  /** For answers; `GET` or `HEAD`. */
  readonly requestMethod: string;
  readonly bytes: Buffer;
}

const METHODS = [
  'GET',
  'GET',
  'POST',
  'POST',
  'PUT',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'M-SEARCH',
  'TRACE',
];
const ODD_METHODS = [
  'CONNECT',
  'get',
  'PROPFIND',
  'GETX',
  'BREW',
  'PRI',
  'SOURCE',
  'PLAY',
  'G@T',
  '',
  'head',
  'Connect',
  'trace',
];
const TARGETS = ['/', '/a/b?c=d', '/%2e%2e/x', '/a;b=c', '/?q=a|b', '//x', "/~!$&'()*+,=:@"];
const ODD_TARGETS = [
  '*',
  'http://a/x',
  'https://a.b:8443?q',
  'a:443',
  'x',
  '/#f',
  '/\\',
  '/\x7f',
  '/é',
  '/a b',
  '?',
  '',
];
const VERSIONS = ['HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.1', 'HTTP/1.0'];
const ODD_VERSIONS = [
  'HTTP/1.2',
  'HTTP/2.0',
  'HTTP/0.9',
  'http/1.1',
  'HTTP/1.1 ',
  'HTTP/11',
  'HTTP/1,1',
  'ICE/1.0',
  '',
];
const STATUSES = [
  '200 OK',
  '200 OK',
  '404 Not Found',
  '204 No Content',
  '304 Not Modified',
  '100 Continue',
  '101 X',
];
const ODD_STATUSES = [
  '200',
  '200 ',
  '205 Reset',
  '103 Early Hints',
  '199 ',
  '600 X',
  '99 X',
  '1000 X',
  '20 0',
  '2x0 X',
];
const HOSTS = ['a', 'a:80', 'example.com', '[::1]:8080', '127.0.0.1'];
const ODD_HOSTS = ['', 'a:', "a!$&'()*+,;=", 'a,b', 'a b', 'a:b', 'u@a', '[::1', 'a:99999', 'a/b', '*'];
const FIELD_LINES = [
  'Accept: */*',
  'User-Agent: x/1.0 (y; z)',
  'X-Empty:',
  'x-tabs:\ta\t\tb\t',
  'Cookie: a=b; c="d, e"',
  'X-Latin: \xe9\xff',
  'Connection: keep-alive',
  'Connection: close',
  'Expect: 100-continue',
  'TE: trailers',
  'Trailer: X-Sum',
];
const ODD_FIELD_LINES = [
  'Connection: upgrade',
  'Upgrade: websocket',
  'Connection: Upgrade, close',
  'Connection: keep-alive, x-y',
  'Connection: close;x',
  'Connection: CLOSE',
  'Connection: keep-alive, close',
  'Connection:,close ,',
  'Connection: clos e',
  'Proxy-Connection: close',
  'Proxy-Connection: keep-alive',
  'Keep-Alive: timeout=5',
  'Host: b',
  'Content-Length: 0',
  'Content-Length: 3',
  'Content-Length: 3, 3',
  'Content-Length: +3',
  'Content-Length: 0x3',
  'Content-Length: 03',
  'Content-Length: 00000000000000000000003',
  'Content-Length: 3 3',
  'Content-Length: -1',
  'Content-Length: 3.0',
  'Content-Length:',
  'Content-Length: 18446744073709551619',
  'Content-Length: 9007199254740993',
  'Content-Length : 3',
  'Content_Length: 3',
  'Transfer_Encoding: chunked',
  'content-length: \t3 \t',
  'Transfer-Encoding: chunked',
  'transfer-encoding: Chunked',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: "chunked"',
  'Transfer-Encoding: chunked;q=1',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding:\tchunked',
  'Transfer-Encoding : chunked',
  ' Transfer-Encoding: chunked',
  'Transfer-Encoding:\r\n chunked',
  'Transfer-Encoding: ,chunked',
  'Transfer-Encoding:',
  'X: a\r\n b',
  'X\x00: a',
  'X: a\x00b',
  'X: a\x7f',
  'X: a\rContent-Length: 3',
  'X: a\nContent-Length: 3',
  ': x',
  'X',
  'X Y: z',
  '(x): y',
  'é: y',
];
const BODIES = [
  '',
  'x',
  'hello',
  '0\r\n\r\n',
  'GET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n',
  '\r\n',
  '\x00\xff\n\r',
];
const EXTENSIONS = ['', '', '', '', ';a', ';a=b', ';a="b;c\\"d"', ';a=b;c=d'];
const ODD_EXTENSIONS = [
  ' ',
  ' ;a',
  ';',
  '; a',
  ' ;a',
  '; a',
  ' ; a\t= b',
  ';a= "b" ;c',
  '; ',
  ';a= ',
  ';a=',
  ';=b',
  ';a="b',
  ';a b',
  ';a\x00',
  ';a\n',
  ';\xe9',
  ';a="\x01"',
  '\t',
];
const TRAILERS = ['X-Sum: 1', 'x-a:', 'Server-Timing: a'];
const ODD_TRAILERS = [
  'Content-Length: 3',
  'Transfer-Encoding: chunked',
  'Authorization: Bearer x',
  'Connection: close',
  'Proxy-Connection: close',
  'Upgrade: x',
  'Content-Length:\t3',
  ' folded',
  'X',
  'X : y',
  'X: \x00',
];
const LINE_ENDS = ['\n', '\r', '\r\r\n', '\n\r', '\r\n\r\n', '\r\n ', ''];
const SPICE = [
  '\r',
  '\n',
  '\0',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '0',
  '9',
  'f',
  '"',
  '\x0b',
  '\x7f',
  '\x80',
  '\x85',
  '\xa0',
  '\xff',
  '-',
  '+',
];

/** How often a choice is taken from the odd ones. */
const ODDITY = 0.06;

export function fuzzCase(random: Random): FuzzCase {
  const kind = random.chance(0.65) ? 'request' : 'response';
  const requestMethod = kind === 'response' && random.chance(0.1) ? 'HEAD' : 'GET';
  let text = '';
  for (let count = 1 + random.below(3); count > 0; count--) {
    if (random.chance(ODDITY)) text += random.pick(['\r\n', '\r\n', '\n', '\r\n\r\n', ' ']);
    text += kind === 'request' ? request(random) : response(random);
  }
  const mutations = random.chance(0.45) ? 0 : 1 + random.below(3);
  for (let count = 0; count < mutations; count++) text = mutate(random, text);
  return { kind, requestMethod, bytes: Buffer.from(text, 'latin1') };
}

function request(random: Random): string {
  const method = choose(random, METHODS, ODD_METHODS);
  const version = choose(random, VERSIONS, ODD_VERSIONS);
  const host = random.chance(0.03) ? [] : [`Host: ${choose(random, HOSTS, ODD_HOSTS)}`];
  return message(random, `${method} ${choose(random, TARGETS, ODD_TARGETS)} ${version}`, host);
}

function response(random: Random): string {
  const version = choose(random, VERSIONS, ODD_VERSIONS);
  return message(random, `${version} ${choose(random, STATUSES, ODD_STATUSES)}`, []);
}

function message(random: Random, startLine: string, given: readonly string[]): string {
  const lines = [...given];
  for (let count = random.below(4); count > 0; count--) {
    lines.push(choose(random, FIELD_LINES, ODD_FIELD_LINES));
  }
  const body = random.pick(BODIES);
  const framing = random.next();
  let octets = '';
  if (framing < 0.3) {
    lines.push(`Content-Length: ${body.length}`);
    if (random.chance(ODDITY)) lines.push(`content-length:  ${random.pick(['', '0', '000'])}${body.length}`);
    octets = body;
  } else if (framing < 0.65) {
    lines.push('Transfer-Encoding: chunked');
    octets = chunked(random, body);
  } else if (framing < 0.68) {
    lines.push('Transfer-Encoding: chunked', `Content-Length: ${body.length}`);
    octets = chunked(random, body);
  }
  if (random.chance(0.5)) shuffle(random, lines);
  return `${[startLine, ...lines].join('\r\n')}\r\n\r\n${octets}`;
}

function chunked(random: Random, body: string): string {
  let text = '';
  for (const data of random.chance(0.5) ? [body] : [body.slice(0, 2), body.slice(2)]) {
    if (data === '') continue;
    text += `${chunkSize(random, data.length)}${choose(random, EXTENSIONS, ODD_EXTENSIONS)}\r\n${data}`;
    text += random.chance(ODDITY) ? random.pick(LINE_ENDS) : '\r\n';
  }
  text += `${random.chance(0.1) ? '000' : '0'}${choose(random, EXTENSIONS, ODD_EXTENSIONS)}\r\n`;
  for (let count = random.chance(0.3) ? 1 + random.below(2) : 0; count > 0; count--) {
    text += `${choose(random, TRAILERS, ODD_TRAILERS)}\r\n`;
  }
  return `${text}\r\n`;
}

function chunkSize(random: Random, size: number): string {
  const digits = size.toString(16);
  if (!random.chance(ODDITY)) return random.chance(0.5) ? digits : digits.toUpperCase();
  return random.pick([
    `0${digits}`,
    `+${digits}`,
    `-${digits}`,
    `0x${digits}`,
    ` ${digits}`,
    `${digits} `,
    `${digits}g`,
    `${'0'.repeat(30)}${digits}`,
    `1000000000000000${digits}`,
    `fffffffffffffff${digits}`,
    `20000000000000${digits}`,
    '',
    '_1',
  ]);
}

function mutate(random: Random, text: string): string {
  const at = random.below(text.length + 1);
  switch (random.below(10)) {
    case 0:
      return text.slice(0, at) + random.pick(SPICE) + text.slice(at);
    case 1:
      return text.slice(0, at) + random.pick(SPICE) + text.slice(at + 1);
    case 2:
      return text.slice(0, at) + text.slice(at + 1);
    case 3:
      return text.slice(0, at) + String.fromCharCode(random.below(256)) + text.slice(at + 1);
    case 4:
      return text.slice(0, at);
    case 5:
      return replaceLineEnd(text, at, random.pick(LINE_ENDS));
    case 6:
      return replaceLineEnd(text, at, `\r\n${random.pick(ODD_FIELD_LINES)}\r\n`);
    case 7:
      return replaceLineEnd(text, at, `${random.pick(SPICE)}\r\n`);
    case 8:
      return replaceLineEnd(text, at, `\r\n${random.pick(SPICE)}`);
    default: {
      const end = at + random.below(12);
      return text.slice(0, end) + text.slice(at, end) + text.slice(end);
    }
  }
}

function replaceLineEnd(text: string, from: number, replacement: string): string {
  const at = text.indexOf('\r\n', from);
  return at === -1 ? text : text.slice(0, at) + replacement + text.slice(at + 2);
}

function choose(random: Random, usual: readonly string[], odd: readonly string[]): string {
  return random.pick(random.chance(ODDITY) ? odd : usual);
}

function shuffle(random: Random, lines: string[]): void {
  for (let last = lines.length - 1; last > 0; last--) {
    const other = random.below(last + 1);
    [lines[last], lines[other]] = [lines[other] as string, lines[last] as string];
  }
}
