import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeLasting } from '../../../../src/proxy/http/lasting-fields.ts';
import { FrameOutput } from '../../../../src/proxy/http2/frame-output.ts';
import { HpackEncoder } from '../../../../src/proxy/http2/hpack/encoder.ts';
import type { OutgoingRequest } from '../../../../src/proxy/streams/contract.ts';
import { requestFields } from '../../../../src/proxy/upstream/http2/carried-request.ts';

const FIELDS = [
  'te',
  'trailers',
  'content-type',
  'application/grpc',
  'authorization',
  'of the app',
  'x-a',
  'b',
];

const outgoing = fc.record({
  method: fc.constantFrom('POST', 'GET'),
  target: fc.constantFrom('/a', '/b'),
  authority: fc.constantFrom('one.test', 'two.test'),
  authorization: fc.constantFrom('Bearer one', 'Bearer two', undefined),
  keepClientAuthorization: fc.boolean(),
  instanceId: fc.constantFrom('one', 'two'),
  upgrade: fc.constantFrom(undefined, 'other/1'),
  hasBody: fc.boolean(),
  scheme: fc.constantFrom('http' as const, 'https' as const),
});

function requestOf(
  values: typeof outgoing extends fc.Arbitrary<infer T> ? T : never,
  fields: string[],
): OutgoingRequest {
  const { method, target, authority, authorization, keepClientAuthorization, instanceId, upgrade, hasBody } =
    values;
  return {
    from: {
      protocol: 'h2',
      method,
      target,
      targetForm: 'origin',
      host: authority,
      fields,
      contentLength: undefined,
      connectionOptions: [],
    },
    target,
    authority,
    authorization,
    keepClientAuthorization,
    instanceId,
    upgrade,
    hasBody,
  };
}

function blockOf(fields: readonly string[]): string {
  const output = new FrameOutput();
  new HpackEncoder().fields(output, fields);
  return output.take().toString('latin1');
}

test('the encoded fields of a request are reused only for the same request with the same token', () => {
  fc.assert(
    fc.property(fc.array(outgoing, { minLength: 1, maxLength: 12 }), (requests) => {
      const lasting = [...FIELDS];
      makeLasting(lasting);
      // Each twice, so that what is kept of it is asked for.
      for (const values of requests.flatMap((one) => [one, one])) {
        const section = requestFields(requestOf(values, lasting), values.scheme);
        const anew = requestFields(requestOf(values, [...FIELDS]), values.scheme);
        expect(section).toEqual(anew);
        expect(blockOf(section)).toBe(blockOf(anew));
      }
    }),
  );
});

test('a repeated request has its fields encoded once', () => {
  const lasting = [...FIELDS];
  makeLasting(lasting);
  const request = requestOf(
    {
      method: 'POST',
      target: '/a',
      authority: 'one.test',
      authorization: 'Bearer one',
      keepClientAuthorization: false,
      instanceId: 'one',
      upgrade: undefined,
      hasBody: true,
      scheme: 'http',
    },
    lasting,
  );
  expect(requestFields({ ...request }, 'http')).toBe(requestFields(request, 'http'));
});
