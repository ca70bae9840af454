import { describe, expect, test } from 'vitest';
import { BodyLength, trailersFault } from '../../../src/proxy/http2/fields.ts';
import { expectedBodyBytes, type RequestKind, readResponse } from '../../../src/proxy/http2/messages.ts';

function read(
  fields: readonly string[],
  asked: RequestKind = 'ordinary',
  endStream = false,
): ReturnType<typeof readResponse> {
  return readResponse([...fields], asked, endStream);
}

describe('HTTP/2 answers', () => {
  test('with a final status are read', () => {
    expect(read([':status', '200', 'a', 'b'])).toEqual({
      kind: 'final',
      status: 200,
      fields: ['a', 'b'],
      contentLength: undefined,
    });
    expect(read([':status', '999'], 'ordinary', true)).toMatchObject({ kind: 'final', status: 999 });
  });

  test('with an interim status are read', () => {
    expect(read([':status', '100'])).toMatchObject({ kind: 'interim', status: 100 });
    expect(read([':status', '103', 'link', 'x'])).toMatchObject({ kind: 'interim', fields: ['link', 'x'] });
  });

  test('with a repeated equal content-length are read', () => {
    expect(read([':status', '200', 'content-length', '3', 'a', 'b', 'content-length', '03'])).toMatchObject({
      contentLength: 3,
      fields: ['content-length', '3', 'a', 'b'],
    });
  });

  test.each([
    ['pseudo_missing', []],
    ['pseudo_missing', ['a', 'b']],
    ['pseudo_repeated', [':status', '200', ':status', '200']],
    ['pseudo_unknown', [':status', '200', ':path', '/']],
    ['pseudo_unknown', [':path', '/', ':status', '200']],
    ['pseudo_late', ['a', 'b', ':status', '200']],
    ['status_malformed', [':status', '']],
    ['status_malformed', [':status', '20']],
    ['status_malformed', [':status', '2000']],
    ['status_malformed', [':status', '099']],
    ['status_malformed', [':status', '2x0']],
    ['status_malformed', [':status', ' 200']],
    ['status_malformed', [':status', '101']],
    ['connection_specific', [':status', '200', 'connection', 'close']],
    ['connection_specific', [':status', '200', 'keep-alive', 'timeout=1']],
    ['connection_specific', [':status', '200', 'proxy-connection', 'close']],
    ['connection_specific', [':status', '200', 'transfer-encoding', 'chunked']],
    ['connection_specific', [':status', '200', 'upgrade', 'h2c']],
    ['te_malformed', [':status', '200', 'te', 'gzip']],
    ['name_malformed', [':status', '200', 'A', 'b']],
    ['value_malformed', [':status', '200', 'a', 'b\n']],
    ['length_repeated', [':status', '200', 'content-length', '3', 'content-length', '4']],
    ['body_not_allowed', [':status', '204', 'content-length', '3']],
    ['body_not_allowed', [':status', '205', 'content-length', '3']],
    ['body_not_allowed', [':status', '103', 'content-length', '3']],
    ['body_not_allowed', [':status', '100', 'content-length', '0']],
  ] as const)('with %s are malformed: %j', (reason, fields) => {
    expect(read(fields)).toBe(reason);
  });

  test('with an interim status do not end the stream', () => {
    expect(read([':status', '100'], 'ordinary', true)).toBe('interim_ends');
  });

  test('that open a tunnel have no length', () => {
    expect(read([':status', '200', 'content-length', '3'], 'connect')).toBe('body_not_allowed');
    expect(read([':status', '403', 'content-length', '3'], 'connect')).toMatchObject({ contentLength: 3 });
  });
});

describe('the body of an HTTP/2 answer', () => {
  test.each([
    ['ordinary', '200', '3', 3],
    ['ordinary', '200', undefined, undefined],
    ['ordinary', '304', '3', 0],
    ['ordinary', '204', undefined, 0],
    ['head', '200', '3', 0],
    ['connect', '200', '0', undefined],
    ['connect', '403', '3', 3],
  ] as const)('to %s, of status %s with length %s, has %s octets', (asked, status, length, expected) => {
    const answer = read(
      [':status', status, ...(length === undefined ? [] : ['content-length', length])],
      asked,
    );
    if (typeof answer === 'string') throw new Error(answer);
    expect(expectedBodyBytes(answer, asked)).toBe(expected);
  });
});

describe('DATA compared with content-length', () => {
  test('may have exactly the declared length', () => {
    const body = new BodyLength(3);
    expect(body.receive(1, false)).toBeUndefined();
    expect(body.receive(2, false)).toBeUndefined();
    expect(body.receive(0, true)).toBeUndefined();
    expect(body.received).toBe(3);
  });

  test('is refused as soon as it is longer, and at the end if shorter', () => {
    expect(new BodyLength(3).receive(4, false)).toBe('length_differs');
    expect(new BodyLength(3).receive(2, true)).toBe('length_differs');
    expect(new BodyLength(0).receive(0, true)).toBeUndefined();
  });

  test('may have any length if none was declared', () => {
    expect(new BodyLength(undefined).receive(7, true)).toBeUndefined();
  });
});

describe('HTTP/2 trailers', () => {
  test.each([
    [undefined, ['grpc-status', '0']],
    [undefined, []],
    ['pseudo_in_trailers', ['a', 'b', ':status', '200']],
    ['pseudo_in_trailers', [':path', '/']],
    ['control_in_trailers', ['content-length', '3']],
    ['control_in_trailers', ['host', 'a']],
    ['connection_specific', ['transfer-encoding', 'chunked']],
    ['name_malformed', ['A', 'b']],
    ['value_malformed', ['a', ' b']],
  ] as const)('with %s are malformed: %j', (reason, fields) => {
    expect(trailersFault([...fields], true)).toBe(reason);
  });

  test('end the stream', () => {
    expect(trailersFault(['a', 'b'], false)).toBe('trailers_unended');
  });
});
