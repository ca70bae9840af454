/**
 * Streams of HTTP/1.1 messages for the differential fuzzer: mostly legal ones from a grammar, with odd choices mixed
 * in, then mutated with the octets and lines that parsers are known to disagree on. Most are short; some are long
 * conversations on one connection, in which heads come again and again, or nearly so.
 */

import type { MessageKind } from '../../../../src/proxy/http1/parse-error.ts';
import type { Random } from './random.ts';

export interface FuzzCase {
  readonly kind: MessageKind;
  /** For answers; `GET` or `HEAD`. */
  readonly requestMethod: string;
  readonly bytes: Buffer;
  /** Something odd may be in it, which the codec may refuse though others do not. */
  readonly odd: boolean;
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

/** Choices after which more messages may follow on the connection. */
const LASTING_METHODS = METHODS.filter((method) => method !== 'HEAD');
const LASTING_FIELD_LINES = FIELD_LINES.filter((line) => line !== 'Connection: close');
const LASTING_STATUSES = ['200 OK', '200 OK', '404 Not Found', '204 No Content', '304 Not Modified'];
/** How often a case is a conversation. */
const CONVERSATIONS = 0.02;

export function fuzzCase(random: Random): FuzzCase {
  return random.chance(CONVERSATIONS) ? conversation(random) : fewMessages(random);
}

/** A head that may come again, and the size of the body that follows it. */
interface LastingHead {
  readonly startLine: string;
  readonly lines: readonly string[];
  readonly body: 'none' | 'length' | 'chunked';
  readonly bytes: number;
}

/** Many messages on one connection; in some, a fault comes late. */
function conversation(random: Random): FuzzCase {
  const kind = random.chance(0.5) ? 'request' : 'response';
  const heads = Array.from({ length: 1 + random.below(5) }, () => lastingHead(random, kind));
  const again = random.pick([0.5, 0.8, 1]);
  let text = '';
  for (let count = 30 + random.below(100); count > 0; count--) {
    const head = random.chance(again) ? random.pick(heads) : lastingHead(random, kind);
    const { startLine, lines, body, bytes } = random.chance(0.2) ? nearly(random, kind, head) : head;
    if (kind === 'request' && random.chance(0.02)) text += '\r\n';
    text += `${[startLine, ...lines].join('\r\n')}\r\n\r\n`;
    const data = letters(random, bytes);
    text += body === 'chunked' ? lastingChunks(random, data) : data;
  }
  const odd = random.chance(0.3);
  if (odd) {
    const middle = Math.floor(text.length / 2);
    text = text.slice(0, middle) + mutate(random, text.slice(middle));
  }
  return { kind, requestMethod: 'GET', bytes: Buffer.from(text, 'latin1'), odd };
}

function lastingHead(random: Random, kind: MessageKind): LastingHead {
  const startLine =
    kind === 'request'
      ? `${random.pick(LASTING_METHODS)} ${random.pick(TARGETS)} HTTP/1.1`
      : `HTTP/1.1 ${random.pick(LASTING_STATUSES)}`;
  const bodiless = /^HTTP\/1.1 [23]04/.test(startLine);
  const choices = ['length', 'length', 'chunked', 'none'] as const;
  const body = bodiless ? 'none' : random.pick(kind === 'request' ? choices : choices.slice(0, 3));
  const bytes = body === 'none' ? 0 : random.pick([0, 1, 2, random.below(40), random.below(3000)]);
  const lines = Array.from({ length: random.below(5) }, () => random.pick(LASTING_FIELD_LINES));
  // Beyond what is remembered, or beyond what is held at first of a head that comes in pieces.
  if (random.chance(0.2)) lines.push(`X-Long: ${letters(random, random.pick([200, 1000, 3000]))}`);
  if (kind === 'request') lines.push(`Host: ${random.pick(HOSTS)}`);
  if (body === 'length') lines.push(`Content-Length: ${bytes}`);
  if (body === 'chunked') lines.push('Transfer-Encoding: chunked');
  shuffle(random, lines);
  return { startLine, lines, body, bytes };
}

/** The same head but for one line, or with a body of another size whose length has as many digits. */
function nearly(random: Random, kind: MessageKind, head: LastingHead): LastingHead {
  const { body, bytes } = head;
  if (head.lines.length === 0) return head;
  const lines = [...head.lines];
  const at = random.below(lines.length);
  const line = lines[at] ?? '';
  switch (random.below(5)) {
    case 0: {
      const other = lastingHead(random, kind);
      // Another status may have no body.
      return kind === 'request' ? { ...head, startLine: other.startLine } : head;
    }
    case 1: {
      const fewer = bytes % 10 === 0 ? bytes : bytes - 1;
      const shorter = lines.map((each) =>
        each === `Content-Length: ${bytes}` ? `Content-Length: ${fewer}` : each,
      );
      return body === 'length' ? { ...head, lines: shorter, bytes: fewer } : head;
    }
    case 2:
      lines[at] = random.chance(0.5) ? line.toLowerCase() : line.replace(': ', ':');
      return { ...head, lines };
    case 3:
      if (!line.startsWith('X-Long: ')) lines.splice(at, 0, `x: ${letters(random, 1)}`);
      else lines[at] = `${line.slice(0, -1)}${letters(random, 1)}`;
      return { ...head, lines };
    default:
      shuffle(random, lines);
      return { ...head, lines };
  }
}

function lastingChunks(random: Random, data: string): string {
  let text = '';
  for (let at = 0; at < data.length; ) {
    const size = random.chance(0.5) ? data.length - at : 1 + random.below(Math.min(60, data.length - at));
    text += `${random.chance(0.1) ? '0' : ''}${size.toString(16)}${random.pick(EXTENSIONS)}\r\n`;
    text += `${data.slice(at, at + size)}\r\n`;
    at += size;
  }
  const trailers = Array.from({ length: random.chance(0.3) ? 1 + random.below(2) : 0 }, () =>
    random.pick(TRAILERS),
  );
  return `${text}0\r\n${trailers.map((line) => `${line}\r\n`).join('')}\r\n`;
}

function letters(random: Random, length: number): string {
  let text = '';
  for (let index = 0; index < length; index++) text += String.fromCharCode(97 + random.below(26));
  return text;
}

function fewMessages(random: Random): FuzzCase {
  const kind = random.chance(0.65) ? 'request' : 'response';
  const requestMethod = kind === 'response' && random.chance(0.1) ? 'HEAD' : 'GET';
  let text = '';
  for (let count = 1 + random.below(3); count > 0; count--) {
    if (random.chance(ODDITY)) text += random.pick(['\r\n', '\r\n', '\n', '\r\n\r\n', ' ']);
    text += kind === 'request' ? request(random) : response(random);
  }
  const mutations = random.chance(0.45) ? 0 : 1 + random.below(3);
  for (let count = 0; count < mutations; count++) text = mutate(random, text);
  return { kind, requestMethod, bytes: Buffer.from(text, 'latin1'), odd: true };
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
