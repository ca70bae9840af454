import { describe, expect, it } from 'vitest';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok } from './messages.ts';
import { expectProblem } from './problem.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

describe('an answer is passed on whole', () => {
  it.each([
    ['of a known length', ok('hello'), 'hello'],
    ['empty', ok(''), ''],
    [
      'chunked',
      `${message('HTTP/1.1 200 OK', [CHUNKED])}${chunk('hel')}${chunk('lo')}${LAST_CHUNK}`,
      'hello',
    ],
    [
      'chunked with extensions',
      `${message('HTTP/1.1 200 OK', [CHUNKED])}5;a="b;c"\r\nhello\r\n00;z\r\n\r\n`,
      'hello',
    ],
    [
      'chunked with padded sizes',
      `${message('HTTP/1.1 200 OK', [CHUNKED])}5   \r\nhello\r\n0\t \r\n\r\n`,
      'hello',
    ],
    ['chunked and empty', `${message('HTTP/1.1 200 OK', [CHUNKED])}${LAST_CHUNK}`, ''],
    ['without a reason phrase', 'HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok', 'ok'],
    ['of an HTTP/1.0 upstream', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok', 'ok'],
    [
      'with every byte',
      ok(String.fromCharCode(...Array(256).keys())),
      String.fromCharCode(...Array(256).keys()),
    ],
  ])('%s', async (_, bytes, body) => {
    const upstream = await startUpstream(answering(bytes));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    // The second answer shows that the first one's end was where it should be.
    for (const target of ['/1', '/2']) {
      expect(await client.send(get(target)).response()).toMatchObject({ status: 200, body });
    }
  });

  it('if it is delimited by the end of the connection', async () => {
    const upstream = await startUpstream((request) => {
      request.answer(message('HTTP/1.1 200 OK', [], 'until the '));
      request.connection.send('end');
      request.connection.end();
    });
    const sidecar = await startSidecar({ upstream });

    expect((await sidecar.exchange(get('/'))).body).toBe('until the end');
  });

  it('in any segmentation', async () => {
    const bytes = `${message('HTTP/1.1 200 OK', ['X: 1', CHUNKED])}3;x\r\nabc\r\n0\r\nT: 1\r\n\r\n`;
    const upstream = await startUpstream(async (request) => {
      const { socket } = request.connection;
      for (const byte of bytes) await new Promise((resolve) => socket.write(byte, 'latin1', resolve));
    });
    const sidecar = await startSidecar({ upstream });

    expect(await sidecar.exchange(get('/'))).toMatchObject({ status: 200, body: 'abc' });
  });

  it('after interim answers, which are passed on too', async () => {
    const hints = message('HTTP/1.1 103 Early Hints', ['Link: </a.css>; rel=preload']);
    const upstream = await startUpstream(
      answering(`${hints}${message('HTTP/1.1 102 Processing', [])}${ok('final')}`),
    );
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange(get('/'));

    expect(answer.body).toBe('final');
    expect(answer.interim.map(({ status }) => status)).toEqual([103, 102]);
    expect(answer.interim[0]?.value('link')).toBe('</a.css>; rel=preload');
  });
});

describe('interim answers to one request', () => {
  const hints = (count: number): string =>
    message('HTTP/1.1 103 Early Hints', ['Link: </a.css>']).repeat(count);

  it('may be up to 64', async () => {
    const sidecar = await startSidecar({
      upstream: await startUpstream(answering(`${hints(64)}${ok('final')}`)),
    });
    const answer = await sidecar.exchange(get('/'));
    expect([answer.body, answer.interim.length]).toEqual(['final', 64]);
  });

  it('above 64 lead to 502', async () => {
    const sidecar = await startSidecar({ upstream: await startUpstream(answering(hints(65))) });
    expectProblem(await sidecar.exchange(get('/')), 'upstream_protocol_error');
  });

  // All together: 128 KiB, and 32 octets for each of 1000 fields.
  it.each([
    [1, 'pass'],
    [2, 'become 502'],
  ])('of 100 KB each lead to: %i %s', async (count, outcome) => {
    const large = message('HTTP/1.1 103 Early Hints', [`Link: <${'a'.repeat(100_000)}>`]).repeat(count);
    const sidecar = await startSidecar({
      upstream: await startUpstream(answering(`${large}${ok('final')}`)),
    });
    const answer = await sidecar.exchange(get('/'));
    if (outcome === 'pass') expect([answer.body, answer.interim.length]).toEqual(['final', 1]);
    else expectProblem(answer, 'upstream_protocol_error');
  });
});

describe('an invalid HTTP/1.1 answer leads to 502', () => {
  const field = (...lines: string[]): string => message('HTTP/1.1 200 OK', lines, 'hello');
  it.each([
    ['garbage', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['an answer of HTTP/1.2', message('HTTP/1.2 200 OK', ['Content-Length: 0'])],
    ['an answer of HTTP/2.0', message('HTTP/2.0 200 OK', ['Content-Length: 0'])],
    ['a status of two digits', message('HTTP/1.1 20 OK', ['Content-Length: 0'])],
    ['a status of letters', message('HTTP/1.1 abc OK', ['Content-Length: 0'])],
    ['Content-Length and Transfer-Encoding', `${field('Content-Length: 5', CHUNKED)}`],
    ['differing Content-Lengths', field('Content-Length: 5', 'Content-Length: 6')],
    ['a Content-Length list that disagrees', field('Content-Length: 5, 6')],
    ['a Content-Length that is no number', field('Content-Length: five')],
    ['a negative Content-Length', field('Content-Length: -5')],
    ['another transfer coding', field('Transfer-Encoding: gzip')],
    ['gzip, chunked', field('Transfer-Encoding: gzip, chunked')],
    ['a bare LF', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
    ['a bare CR in a value', field('X: a\rb', 'Content-Length: 5')],
    ['obs-fold', field('X: a\r\n b', 'Content-Length: 5')],
    ['a space before the colon', field('X : a', 'Content-Length: 5')],
    ['NUL in a value', field('X: a\0', 'Content-Length: 5')],
    ['no colon', field('nonsense', 'Content-Length: 5')],
    [
      'a 101 without an offer',
      message('HTTP/1.1 101 Switching Protocols', ['Upgrade: x', 'Connection: upgrade']),
    ],
  ])('%s', async (_, bytes) => {
    const upstream = await startUpstream(answering(bytes));
    const sidecar = await startSidecar({ upstream });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_protocol_error');
  });

  it('such as frames of HTTP/2, with the setting to change', async () => {
    const upstream = await startUpstream(answering('\0\0\0\x04\0\0\0\0\0'));
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange(get('/'));

    expectProblem(answer, 'upstream_protocol_error');
    expect(answer.body).toContain('protocol: h2c (over TLS h2) has to be set');
  });

  it.each([
    ['nothing', ''],
    ['half a head', 'HTTP/1.1 200 OK\r\nContent-Le'],
    ['an interim answer alone', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
  ])('such as %s followed by the end', async (_, bytes) => {
    const upstream = await startUpstream((request) => {
      request.answer(bytes);
      request.connection.end();
    });
    const sidecar = await startSidecar({ upstream });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_protocol_error');
  });

  it('such as an endless head, which is cut', async () => {
    const upstream = await startUpstream((request) => {
      request.answer('HTTP/1.1 200 OK\r\n');
      const pour = (): void => {
        if (!request.connection.socket.writable) return;
        request.connection.socket.write('X: y\r\n'.repeat(10_000), () => pour());
      };
      pour();
    });
    const sidecar = await startSidecar({ upstream });

    expectProblem(await sidecar.exchange(get('/')), 'upstream_protocol_error');
    await upstream.connections[0]?.closed();
  });
});

describe('an answer that breaks off is visibly incomplete', () => {
  it.each([
    ['short of its Content-Length', message('HTTP/1.1 200 OK', ['Content-Length: 10'], 'hello')],
    ['before the last chunk', message('HTTP/1.1 200 OK', [CHUNKED], chunk('hello'))],
    ['in the midst of a chunk', message('HTTP/1.1 200 OK', [CHUNKED], 'a\r\nhello')],
    ['in the trailer section', message('HTTP/1.1 200 OK', [CHUNKED], `${chunk('hello')}0\r\nX: y\r\n`)],
  ])('%s', async (_, bytes) => {
    const upstream = await startUpstream((request) => {
      request.answer(bytes);
      request.connection.end();
    });
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(get('/'));

    expect((await client.head()).status).toBe(200);
    await client.closed();
    expect(client.received.text).toContain('hello');
    expect(client.received.text).not.toMatch(/\r\n0\r\n/);
  });

  it.each([
    ['a chunk size that is none', `${chunk('hello')}zz\r\n`],
    ['a chunk longer than its size', '5\r\nhello!\r\n0\r\n\r\n'],
    ['a chunk size past 2^53', `${chunk('hello')}20000000000001\r\nhello`],
    ['a signed chunk size', `${chunk('hello')}+0\r\n\r\n`],
    ['a bare LF', `${chunk('hello')}0\n\n`],
    ['a malformed trailer', `${chunk('hello')}0\r\nX : y\r\n\r\n`],
  ])('when it is cut at %s', async (_, body) => {
    const upstream = await startUpstream(answering(message('HTTP/1.1 200 OK', [CHUNKED], body)));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(get('/'));

    await client.closed();
    expect(client.received.text).not.toMatch(/\r\n0\r\n/);
    await upstream.connections[0]?.closed();
  });

  it('when the upstream resets an answer without a length', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    client.send(get('/'));
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', [], 'hello'));
    await client.received.contains('hello');
    arrived.connection.reset();

    await expect(client.response()).rejects.toThrow();
  });
});

describe('a 204 that declares a body is passed on without it, and its connection is not reused', () => {
  it.each([
    ['in chunks, and has none', message('HTTP/1.1 204 No Content', [CHUNKED])],
    ['in chunks, and has an empty one', message('HTTP/1.1 204 No Content', [CHUNKED], LAST_CHUNK)],
    ['of a length, and has it', message('HTTP/1.1 204 No Content', ['Content-Length: 5'], 'hello')],
  ])('%s', async (_, bytes) => {
    const upstream = await startUpstream(inTurn(answering(bytes), answering(ok('second'))));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    const answer = await client.send(get('/1')).response();

    expect(answer).toMatchObject({ status: 204, body: '' });
    expect([answer.head.value('content-length'), answer.head.value('transfer-encoding')]).toEqual([
      undefined,
      undefined,
    ]);
    expect((await client.send(get('/2')).response()).body).toBe('second');
    expect(upstream.connections).toHaveLength(2);
  });
});

describe('bytes after the end of an answer are never taken for the next answer', () => {
  it.each([
    ['another answer', ok('forged')],
    ['garbage', 'forged garbage\r\n\r\n'],
  ])('%s', async (_, extra) => {
    const upstream = await startUpstream(inTurn(answering(ok('first') + extra), answering(ok('second'))));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    expect((await client.send(get('/1')).response()).body).toBe('first');
    expect((await client.send(get('/2')).response()).body).toBe('second');
  });

  it('nor is an answer that came before its request', async () => {
    const upstream = await startUpstream(inTurn(answering(ok('first')), answering(ok('second'))));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    expect((await client.send(get('/1')).response()).body).toBe('first');

    const [idle] = upstream.connections;
    idle?.send(ok('forged'));
    await idle?.closed();

    expect((await client.send(get('/2')).response()).body).toBe('second');
  });
});
