import { describe, expect, it } from 'vitest';
import { FIRST } from './fake-bearer.ts';
import { CHUNKED, get, LAST_CHUNK, message, ok, post, request } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

/** What an attacker wants the upstream to take for a request of its own. */
const SMUGGLED = get('/smuggled', 'Authorization: Basic YTpi');

/** Sends the bytes with a request hidden behind them; asserts 400, a close, and that only the fence arrived whole. */
async function expectRefused(
  bytes: string,
  transport: 'plain' | 'as-run' = 'as-run',
): Promise<{ beforeFence: string }> {
  const upstream = await startUpstream(answering(ok()), transport);
  const sidecar = await startSidecar({ upstream });
  const client = await sidecar.connect();

  const answer = await client.send(bytes + SMUGGLED).response();

  expectProblem(answer, 'bad_request');
  expect(answer.head.value('connection')).toBe('close');
  // As a client does that reads `close`; that the sidecar needs no such push is shown below.
  client.end();
  await client.closed();
  expect(client.received.text.match(/^HTTP\/1\.1 \d/gm)).toHaveLength(1);
  await sidecar.idle();
  const beforeFence = upstream.text;
  await sidecar.fence();
  expect(upstream.text).not.toMatch(/smuggled|YTpi/);
  return { beforeFence };
}

/** Refused by the head alone: not a byte goes upstream, so what that speaks has no part in it. */
async function expectRefusedAtHead(bytes: string): Promise<void> {
  expect((await expectRefused(bytes, 'plain')).beforeFence).toBe('');
}

describe('a body whose length can be read in two ways is refused', () => {
  it.each([
    ['Content-Length and Transfer-Encoding', ['Content-Length: 5', CHUNKED]],
    ['Transfer-Encoding and Content-Length', [CHUNKED, 'Content-Length: 5']],
    ['Content-Length 0 and Transfer-Encoding', ['Content-Length: 0', CHUNKED]],
    ['differing Content-Lengths', ['Content-Length: 5', 'Content-Length: 6']],
    ['repeated Content-Lengths', ['Content-Length: 5', 'content-length: 5']],
    ['a Content-Length list', ['Content-Length: 5, 5']],
    ['a Content-Length list that disagrees', ['Content-Length: 0,5']],
    ['a signed Content-Length', ['Content-Length: +5']],
    ['a negative Content-Length', ['Content-Length: -5']],
    ['a hexadecimal Content-Length', ['Content-Length: 0x5']],
    ['an exponential Content-Length', ['Content-Length: 5e0']],
    ['a fractional Content-Length', ['Content-Length: 5.0']],
    ['a Content-Length with a tail', ['Content-Length: 5a']],
    ['a Content-Length with a space inside', ['Content-Length: 1 0']],
    ['an underscored Content-Length', ['Content-Length: 1_0']],
    ['an empty Content-Length', ['Content-Length:']],
    ['a Content-Length past 2^53', ['Content-Length: 9007199254740993']],
    ['a Content-Length past 2^64', ['Content-Length: 18446744073709551621']],
    ['a Content-Length of other digits', ['Content-Length: \xb2']],
    ['another transfer coding', ['Transfer-Encoding: gzip']],
    ['identity', ['Transfer-Encoding: identity']],
    ['gzip, chunked', ['Transfer-Encoding: gzip, chunked']],
    ['chunked, identity', ['Transfer-Encoding: chunked, identity']],
    ['chunked twice', ['Transfer-Encoding: chunked, chunked']],
    ['chunked and an empty element', ['Transfer-Encoding: chunked,']],
    ['a leading comma', ['Transfer-Encoding: ,chunked']],
    ['two Transfer-Encodings', [CHUNKED, CHUNKED]],
    ['two Transfer-Encodings that disagree', [CHUNKED, 'Transfer-Encoding: identity']],
    ['chunked with a parameter', ['Transfer-Encoding: chunked;q=1']],
    ['chunked in quotes', ['Transfer-Encoding: "chunked"']],
    ['chunked misspelt', ['Transfer-Encoding: xchunked']],
    ['chunked after a vertical tab', ['Transfer-Encoding: \x0bchunked']],
    ['chunked before a form feed', ['Transfer-Encoding: chunked\x0c']],
    ['chunked after a no-break space', ['Transfer-Encoding: \xa0chunked']],
    ['an empty Transfer-Encoding', ['Transfer-Encoding:']],
    ['Transfer-Encoding before a colon with a space', ['Transfer-Encoding : chunked']],
    ['Transfer-Encoding folded', ['Transfer-Encoding:\r\n chunked']],
    ['Transfer-Encoding behind a bare LF', ['X: y\nTransfer-Encoding: chunked']],
    ['Transfer-Encoding behind a bare CR', ['X: y\rTransfer-Encoding: chunked']],
    ['Content-Length before a colon with a tab', ['Content-Length\t: 5']],
  ])('%s', async (_, fields) => {
    await expectRefusedAtHead(message('POST / HTTP/1.1', ['Host: app.test', ...fields], LAST_CHUNK));
  });

  it('such as Transfer-Encoding in an HTTP/1.0 request', async () => {
    await expectRefusedAtHead(message('POST / HTTP/1.0', ['Host: app.test', CHUNKED], LAST_CHUNK));
  });
});

describe('a head that is not HTTP/1.1 is refused', () => {
  const line = (startLine: string): string => message(startLine, ['Host: app.test']);
  const field = (text: string): string => message('GET / HTTP/1.1', ['Host: app.test', text]);
  it.each([
    ['bare LF line ends', 'GET / HTTP/1.1\nHost: app.test\n\n'],
    ['one bare LF', 'GET / HTTP/1.1\r\nHost: app.test\nX: y\r\n\r\n'],
    ["a bare LF at the head's end", 'GET / HTTP/1.1\r\nHost: app.test\r\n\n'],
    ['a bare LF after the request line', 'GET / HTTP/1.1\nHost: app.test\r\n\r\n'],
    ['a bare CR in a value', field('X: a\rb')],
    ['CR CR LF', field('X: a\r')],
    ['obs-fold with a space', field('X: a\r\n b')],
    ['obs-fold with a tab', field('X: a\r\n\tb')],
    ['a first field line that begins with a space', 'GET / HTTP/1.1\r\n Host: app.test\r\n\r\n'],
    ['a space before the colon', field('X : a')],
    ['a tab before the colon', field('X\t: a')],
    ['a space in a name', field('X Y: a')],
    ['an empty name', field(': a')],
    ['no colon', field('nonsense')],
    ['a name in brackets', field('X(y): a')],
    ['a name beyond ASCII', field('X\xe9: a')],
    ['NUL in a value', field('X: a\0b')],
    ['NUL in a name', field('X\0: a')],
    ['a control byte in a value', field('X: a\x01b')],
    ['DEL in a value', field('X: a\x7fb')],
    ['an escape in a value', field('X: \x1b[0m')],
    ['a lower-case version', line('GET / http/1.1')],
    ['HTTP/1.2', line('GET / HTTP/1.2')],
    ['HTTP/2.0', line('GET / HTTP/2.0')],
    ['HTTP/0.9', line('GET / HTTP/0.9')],
    ['HTTP/1.10', line('GET / HTTP/1.10')],
    ['HTTP/1', line('GET / HTTP/1')],
    ['another protocol', line('GET / RTSP/1.0')],
    ['no version', line('GET /')],
    ['two spaces', line('GET  / HTTP/1.1')],
    ['HEAD in lower case', line('head / HTTP/1.1')],
    ['no target', line('GET HTTP/1.1')],
    ['a tab for a space', line('GET\t/ HTTP/1.1')],
    ['a trailing space', line('GET / HTTP/1.1 ')],
    ['a leading space', line(' GET / HTTP/1.1')],
    ['a space in the target', line('GET /a b HTTP/1.1')],
    ['a method in brackets', line('G(T / HTTP/1.1')],
    ['a control byte in the method', line('G\x01T / HTTP/1.1')],
    ['a TLS greeting', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
    ['an HTTP/2 preface that is none', 'PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n'],
  ])('%s', async (_, bytes) => {
    await expectRefusedAtHead(bytes);
  });
});

it('a request with an unknown method passes', async () => {
  const upstream = await startUpstream(answering(ok('fine')));
  const sidecar = await startSidecar({ upstream });

  expect((await sidecar.exchange(message('X-UNHEARD.OF / HTTP/1.1', ['Host: app.test']))).body).toBe('fine');

  expect(upstream.text).toMatch(/^X-UNHEARD\.OF \/ HTTP\/1\.1\r\n/);
  expect(upstream.requests[0]?.head.values('authorization')).toEqual([FIRST]);
  await sidecar.idle();
  expect(await sidecar.metric('proxy_requests_total', { method: '_OTHER', code: '200' })).toBe(1);
});

describe('a Host that is missing, repeated or not an authority is refused', () => {
  it.each([
    ['none', []],
    ['two', ['Host: app.test', 'Host: app.test']],
    ['two that differ', ['Host: app.test', 'host: other.test']],
    ['a space', ['Host: app test']],
    ['a slash', ['Host: app.test/x']],
    ['user information', ['Host: user@app.test']],
    ['a list', ['Host: app.test, other.test']],
    ['a query', ['Host: app.test?x']],
    ['a fragment', ['Host: app.test#x']],
    ['a port that is no number', ['Host: app.test:http']],
    ['an open bracket', ['Host: [::1']],
  ])('%s', async (_, fields) => {
    await expectRefusedAtHead(message('GET / HTTP/1.1', fields));
  });
});

describe('a malformed chunked body is refused, and never complete upstream', () => {
  it.each([
    ['a signed size', '+5\r\nhello\r\n'],
    ['a negative size', '-5\r\nhello\r\n'],
    ['a prefixed size', '0x5\r\nhello\r\n'],
    ['a space before the size', ' 5\r\nhello\r\n'],
    ['a space after the size', '5 \r\nhello\r\n'],
    ['an underscored size', '0_5\r\nhello\r\n'],
    ['an empty size', '\r\nhello\r\n'],
    ['no hexadecimal digit', 'g\r\nhello\r\n'],
    ['a size past 2^53', '20000000000001\r\nhello\r\n'],
    ['a size past 2^64', '10000000000000005\r\nhello\r\n'],
    ['a size ended by a bare LF', '5\nhello\r\n'],
    ['a size ended by a bare CR', '5\rXhello\r\n'],
    ['data ended by a bare LF', '5\r\nhello\n'],
    ['data without an end', '5\r\nhello'],
    ['data longer than its size', '5\r\nhello!\r\n'],
    ['a bare LF in an extension', '5;a=\nb\r\nhello\r\n'],
    ['a bare CR in an extension', '5;a=\rb\r\nhello\r\n'],
    ['NUL in an extension', '5;a=\0\r\nhello\r\n'],
    ['the last chunk ended by a bare LF', '0\n'],
    ['a trailer section ended by a bare LF', '0\r\n\n'],
    ['a trailer with a bare LF', '0\r\nX: y\nZ: w\r\n'],
    ['a folded trailer', '0\r\nX: y\r\n z\r\n'],
    ['a trailer with a space before the colon', '0\r\nX : y\r\n'],
    ['a trailer without a colon', '0\r\nnonsense\r\n'],
    ['NUL in a trailer', '0\r\nX: \0\r\n'],
  ])('%s', async (_, body) => {
    const bytes = `${request('POST', '/', [CHUNKED])}${body}${LAST_CHUNK}`;
    const { beforeFence } = await expectRefused(bytes);
    expect(beforeFence).not.toMatch(/\r\n0\r\n/);
  });
});

it.each([
  ['head', message('POST / HTTP/1.1', ['Host: app.test', 'Content-Length: 5', CHUNKED], LAST_CHUNK)],
  ['body', `${request('POST', '/', [CHUNKED])}nonsense\r\n`],
])('the sidecar closes the connection after refusing a %s', async (_, bytes) => {
  const upstream = await startUpstream();
  const sidecar = await startSidecar({ upstream });
  const client = await sidecar.connect();

  expectProblem(await client.send(bytes).response(), 'bad_request');

  expect(await client.closed()).toBe('end');
});

describe('a valid request is accepted', () => {
  it.each([
    ['chunked in another case', request('POST', '/', ['Transfer-Encoding: ChunKed'], undefined), 'hello'],
    ['spaces around chunked', request('POST', '/', ['Transfer-Encoding:   chunked ']), 'hello'],
  ])('%s', async (_, head, body) => {
    const upstream = await startUpstream(answering(ok('fine')));
    const sidecar = await startSidecar({ upstream });

    expect((await sidecar.exchange(`${head}5;ext="v"\r\nhello\r\n000\r\n\r\n`)).body).toBe('fine');

    expect((await upstream.requests[0]?.body())?.text).toBe(body);
  });

  it('in every spelling of chunked coding, and forwarded in one', async () => {
    const doubled = 'HTTP/1.1 200 OK\r\nContent-Length: 04\r\nContent-Length: 4\r\n\r\nfine';
    const upstream = await startUpstream(answering(doubled));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(message('post /a/../b HTTP/1.1', ["Host: a!$&'()*+,;=~:", 'Content-Length: 0004'], 'body'));
    const first = await client.response();
    client.send(`${request('POST', '/', [CHUNKED])}0004 ; a = b\r\nbody\r\n0 ;c\r\n\r\n`);
    const second = await client.response();

    for (const { head, body } of [first, second]) {
      expect([head.values('content-length'), body]).toEqual([['4'], 'fine']);
    }
    const [post, chunked] = upstream.requests;
    expect(post?.head.startLine).toBe('post /a/../b HTTP/1.1');
    expect([post?.head.values('host'), post?.head.values('content-length')]).toEqual([
      [upstream.authority],
      ['4'],
    ]);
    expect((await post?.body())?.text).toBe('body');
    expect((await chunked?.body())?.text).toBe('body');
    expect(upstream.text).toContain('\r\n\r\n4\r\nbody\r\n0\r\n\r\n');
  });

  it('in any segmentation', async () => {
    const upstream = await startUpstream(answering(ok('fine')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    const bytes = `${post('/1', 'body')}${request('POST', '/2', [CHUNKED])}3;x\r\nabc\r\n0\r\nT: 1\r\n\r\n${get('/3')}`;

    for (const byte of bytes) {
      await new Promise((resolve) => client.socket.write(byte, 'latin1', resolve));
    }

    expect([await client.response(), await client.response(), await client.response()]).toMatchObject([
      { body: 'fine' },
      { body: 'fine' },
      { body: 'fine' },
    ]);
    expect(await Promise.all(upstream.requests.map((arrived) => arrived.body()))).toMatchObject([
      { text: 'body' },
      { text: 'abc' },
      { text: '' },
    ]);
    expect(upstream.targets).toEqual(['/1', '/2', '/3']);
  });
});

describe('bytes of another protocol are refused at their first line', () => {
  it.each([
    ['HTTP/0.9', 'GET /\r\n'],
    ['SSH', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['SMTP', 'EHLO app.test\r\n'],
    ['an answer', 'HTTP/1.1 200 OK\r\n'],
  ])('from the app: %s', async (_, bytes) => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    expectProblem(await client.send(bytes).response(), 'bad_request');
    expect(await client.closed()).toBe('end');
  });

  it('from an upstream', async () => {
    const upstream = await startUpstream((arrived) => arrived.answer('SSH-2.0-OpenSSH_9.2\r\n'));
    const sidecar = await startSidecar({ upstream });
    expectProblem(await sidecar.exchange(get('/')), 'upstream_protocol_error');
    await upstream.connections[0]?.closed();
  });
});
