import { describe, expect, it } from 'vitest';
import type { OutgoingRequest } from '../../../../src/proxy/streams/upstream-stream.ts';
import { requestFields, trailerFields } from '../../../../src/proxy/upstream/http2/request-fields.ts';

interface Asked extends Partial<Omit<OutgoingRequest, 'from'>> {
  readonly fields?: string[];
  readonly options?: string[];
}

function written({ fields = [], options = [], ...more }: Asked): string[] {
  const written = requestFields(
    {
      from: {
        protocol: 'http1',
        method: 'POST',
        target: '/asked',
        targetForm: 'origin',
        host: 'app.test',
        fields,
        contentLength: undefined,
        connectionOptions: options,
      },
      target: '/sent',
      authority: 'up.test:8443',
      authorization: 'Bearer t',
      keepClientAuthorization: false,
      instanceId: 'me',
      upgrade: undefined,
      hasBody: true,
      ...more,
    },
    'https',
  );
  expect(written.slice(0, 8)).toEqual([
    ':method',
    'POST',
    ':scheme',
    'https',
    ':authority',
    'up.test:8443',
    ':path',
    '/sent',
  ]);
  return written.slice(8);
}

const OWN = ['token-sidecar-hop', 'me', 'authorization', 'Bearer t'];

describe('the fields of a request in HTTP/2', () => {
  it.each([
    ['names in lower case', ['X-A', 'B', 'x-a', 'c'], [], ['x-a', 'B', 'x-a', 'c']],
    ['no Host', ['Host', 'app.test', 'x', '1'], [], ['x', '1']],
    ['what Connection names is gone', ['Connection', 'x-mine', 'X-Mine', '1'], ['x-mine'], []],
    ['no framing of HTTP/1.1', ['Transfer-Encoding', 'chunked'], [], []],
    ['TE for trailers alone', ['TE', 'gzip, trailers'], ['te'], ['te', 'trailers']],
    ['no TE otherwise', ['TE', 'gzip'], ['te'], []],
    ['trailers that are announced', ['Trailer', 'x-sum'], [], ['trailer', 'x-sum']],
    ['a length', ['Content-Length', '5'], [], ['content-length', '5']],
    ['Expect', ['Expect', '100-continue'], [], ['expect', '100-continue']],
    ['cookies as they came', ['cookie', 'a=1', 'cookie', 'b=2'], [], ['cookie', 'a=1', 'cookie', 'b=2']],
    ['none of the client’s tokens', ['Authorization', 'Bearer mine'], [], []],
  ])('are %s', (_, fields, options, passed) => {
    expect(written({ fields, options })).toEqual([...passed, ...OWN]);
  });

  it('are the client’s own token where it is to be kept', () => {
    const fields = ['Authorization', 'Bearer mine'];
    expect(written({ fields, keepClientAuthorization: true, authorization: undefined })).toEqual([
      'authorization',
      'Bearer mine',
      'token-sidecar-hop',
      'me',
    ]);
  });

  it('are not written for a WebSocket, and without Upgrade for any other', () => {
    const upgrading = { fields: ['Upgrade', 'x'], options: ['upgrade'] };
    expect(written({ ...upgrading, upgrade: 'h2c, TLS/1.0' })).toEqual(OWN);
    expect(() => written({ ...upgrading, upgrade: 'other, WebSocket' })).toThrow('protocol: http1');
  });
});

it('trailers have names in lower case, and values as they are', () => {
  expect(trailerFields(['X-Sum', 'ABC', 'y', 'D'])).toEqual(['x-sum', 'ABC', 'y', 'D']);
});
