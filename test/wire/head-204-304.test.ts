import { describe, expect, it } from 'vitest';
import { withoutToken } from './fake-bearer.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok, request } from './messages.ts';
import { answering, inTurn, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

describe('an answer that has no body', () => {
  it.each([
    [
      'HEAD, with the length that GET would have',
      'HEAD',
      'HTTP/1.1 200 OK',
      ['Content-Length: 12345'],
      '12345',
    ],
    ['HEAD, chunked', 'HEAD', 'HTTP/1.1 200 OK', [CHUNKED], undefined],
    ['HEAD, without a length', 'HEAD', 'HTTP/1.1 200 OK', ['X: y'], undefined],
    ['HEAD, 404', 'HEAD', 'HTTP/1.1 404 Not Found', ['Content-Length: 9'], '9'],
    ['204', 'GET', 'HTTP/1.1 204 No Content', ['X: y'], undefined],
    ['204 to DELETE', 'DELETE', 'HTTP/1.1 204 No Content', [], undefined],
    ['205', 'POST', 'HTTP/1.1 205 Reset Content', ['Content-Length: 0'], '0'],
    ['304', 'GET', 'HTTP/1.1 304 Not Modified', ['ETag: "x"'], undefined],
    [
      '304, with the length that 200 would have',
      'GET',
      'HTTP/1.1 304 Not Modified',
      ['Content-Length: 77'],
      '77',
    ],
  ])('%s', async (_, method, statusLine, fields, length) => {
    const upstream = await startUpstream(
      inTurn(answering(message(statusLine, fields)), answering(ok('next'))),
    );
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    const bodiless = await client.send(request(method, '/')).response(method);

    expect(bodiless.head.startLine).toBe(statusLine);
    expect(bodiless.head.value('content-length')).toBe(length);
    // What follows is the next answer.
    expect((await client.send(get('/next')).response()).body).toBe('next');
  });

  it('because it is 205 drops whatever the upstream sends after it', async () => {
    const upstream = await startUpstream(
      inTurn(
        answering(`${message('HTTP/1.1 205 Reset Content', [CHUNKED])}${chunk('no body')}${LAST_CHUNK}`),
        answering(ok('next')),
      ),
    );
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    const bodiless = await client.send(request('POST', '/')).response();

    expect(bodiless.head.values('content-length')).toEqual(['0']);
    expect(bodiless.head.values('transfer-encoding')).toEqual([]);
    expect((await client.send(get('/next')).response()).body).toBe('next');
  });

  it('because it is an error of the sidecar to HEAD has no body', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream, bearer: withoutToken() });
    const client = await sidecar.connect();

    const refused = await client.send(request('HEAD', '/', ['Connection: close'])).response('HEAD');

    expect(refused.head.value('token-sidecar-error')).toBe('token_unavailable');
    expect(Number(refused.head.value('content-length'))).toBeGreaterThan(0);
    expect(await client.closed()).toBe('end');
    expect(client.received.text.endsWith('\r\n\r\n')).toBe(true);
  });
});
