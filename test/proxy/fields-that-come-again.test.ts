/**
 * Sections that come again octet for octet are the same array each time, and what was made of it is used again
 * (`lasting-fields.ts`). Here the whole way from the decoder to the octets that leave is gone in long random sequences, beside
 * the same way with arrays that come once.
 */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withoutCredentials } from '../../src/gateway/authorizer.ts';
import { incomingRequest, responseSection } from '../../src/proxy/downstream/http2/messages.ts';
import type { Fields } from '../../src/proxy/http/fields.ts';
import { isLasting, makeLasting } from '../../src/proxy/http/lasting-fields.ts';
import { serializeRequestHead, serializeResponseHead } from '../../src/proxy/http1/serialize.ts';
import { FrameOutput } from '../../src/proxy/http2/frame-output.ts';
import { HpackEncoder } from '../../src/proxy/http2/hpack/encoder.ts';
import { type RequestKind, readRequest, readResponse } from '../../src/proxy/http2/messages.ts';
import type { IncomingRequest, OutgoingRequest } from '../../src/proxy/streams/contract.ts';
import {
  type RequestBodyForm,
  responseFields,
  upstreamFields,
} from '../../src/proxy/streams/header-rules.ts';
import { TokenPlacement } from '../../src/proxy/streams/token-placement.ts';
import { requestFields } from '../../src/proxy/upstream/http2/carried-request.ts';
import { volume } from '../support/volume.ts';

const RUNS = { numRuns: volume(50, 1000) };

/** Long sequences of a few members, each of which differs from the first in one thing: what a key lacks shows in these. */
function sequenceOf<T extends object>(member: fc.Arbitrary<T>): fc.Arbitrary<readonly T[]> {
  const others = fc.array(fc.tuple(member, fc.nat()), { minLength: 1, maxLength: 12, size: 'max' });
  const order = fc.array(fc.nat(11), { minLength: 50, maxLength: 250, size: 'max' });
  return fc.tuple(member, others, order).map(([first, changes, indexes]) => {
    const keys = Object.keys(first) as (keyof T)[];
    const changed = changes.map(([other, at]) => {
      const key = keys[at % keys.length] as keyof T;
      return { ...first, [key]: other[key] };
    });
    const members = [first, ...changed];
    return indexes.map((at) => members[at % members.length] as T);
  });
}

const LONG = 'v'.repeat(600);

/** As HTTP/2 has them, and without pseudo-fields, as HTTP/1.1 does. */
const REQUESTS: readonly Fields[] = [
  ['host', 'a.test', 'x-a', '1', 'trailer', 'x-b'],
  ['host', 'a.test', 'authorization', 'Basic own', 'te', 'trailers'],
  [':method', 'CONNECT', ':protocol', 'websocket', ':scheme', 'http', ':authority', 'a.test', ':path', '/'],
  [':method', 'GET', ':scheme', 'http', ':authority', 'a.test', ':path', '/'],
  [':method', 'POST', ':scheme', 'http', ':authority', 'a.test', ':path', '/x', 'te', 'trailers', 'x-a', '1'],
  [':method', 'POST', ':scheme', 'http', ':authority', 'a.test', ':path', '/x', 'te', 'trailers', 'x-a', '2'],
  [':method', 'OPTIONS', ':scheme', 'http', ':authority', 'a.test', ':path', '*', 'max-forwards', '3'],
  [':method', 'GET', ':scheme', 'https', ':path', '/', 'host', 'b.test', 'cookie', 'a=1', 'cookie', 'b=2'],
  [':method', 'GET', ':scheme', 'http', ':authority', 'a.test', ':path', '/', 'authorization', 'Basic own'],
  [':method', 'GET', ':scheme', 'http', ':authority', 'a.test', ':path', '/', 'x-key', 'Key {{token}}'],
  [':method', 'PUT', ':scheme', 'http', ':authority', 'a.test', ':path', '/', 'token-sidecar-caller', 'abc'],
  [
    ':method',
    'PUT',
    ':scheme',
    'http',
    ':authority',
    'a.test',
    ':path',
    '/',
    'content-length',
    '007',
    'x',
    LONG,
  ],
  [':method', 'GET', ':scheme', 'http', ':authority', 'a.test', ':path', '/', 'connection', 'close'],
  [':method', 'GET', ':scheme', 'http', ':authority', 'a.test', ':path', '/', ':late', ''],
];

const ANSWERS: readonly Fields[] = [
  ['x-a', '1', 'content-length', '5', 'trailer', 'x-b'],
  [':status', '200'],
  [':status', '200', 'x-a', '1', 'content-length', '5'],
  [':status', '200', 'x-a', '2', 'content-length', '5', 'content-length', '5'],
  [':status', '404', 'x-a', '1', 'trailer', 'x-b'],
  [':status', '204', 'content-length', '0'],
  [':status', '100', 'x-a', '1'],
  [':status', '200', 'token-sidecar-error', 'bad_request', 'x', LONG],
  [':status', '20'],
  ['x-a', '1'],
];

/** Arrays of these sections, known from before or new. */
function known(sections: readonly Fields[]): Fields[] {
  return sections.map((section) => {
    const fields = [...section];
    makeLasting(fields);
    return fields;
  });
}

function blockOf(fields: Fields, neverIndexed: readonly string[] = []): string {
  const output = new FrameOutput();
  const encoder = new HpackEncoder();
  encoder.begin(output);
  encoder.fields(output, fields, neverIndexed);
  return output.take().toString('hex');
}

const RULES = [{ targetBytes: 100 }, { targetBytes: 1 }];
const PLACEMENTS = [
  undefined,
  new TokenPlacement([{ into: 'header', header: 'X-Key', scheme: 'Key' }]),
  new TokenPlacement([{ into: 'placeholder', header: 'x-key', placeholder: '{{token}}' }]),
];
const NEVER_INDEXED: readonly (readonly string[])[] = [[], ['x-a']];

const oneRequest = fc.record({
  method: fc.constantFrom('GET', 'POST'),
  target: fc.constantFrom('/', '/x'),
  at: fc.nat(REQUESTS.length - 1),
  rules: fc.constantFrom(...RULES),
  never: fc.constantFrom(...NEVER_INDEXED),
  placement: fc.constantFrom(...PLACEMENTS),
  authority: fc.constantFrom('one.test', 'two.test'),
  authorization: fc.constantFrom(undefined, 'Bearer one', 'Bearer two'),
  keepClientAuthorization: fc.boolean(),
  instanceId: fc.constantFrom('i-1', 'i-2'),
  upgrade: fc.constantFrom(undefined, 'other/1'),
  hasBody: fc.boolean(),
  form: fc.constantFrom<RequestBodyForm>('chunked', 'empty', 'plain'),
  scheme: fc.constantFrom<'http' | 'https'>('http', 'https'),
});

type OneRequest = typeof oneRequest extends fc.Arbitrary<infer T> ? T : never;

/** A request that came by HTTP/2, or with these field lines by HTTP/1.1. */
function requestOf(fields: Fields, { method, target, rules, never }: OneRequest): IncomingRequest | string {
  if (!fields[0]?.startsWith(':')) {
    const [, host] = fields;
    const rest = {
      targetForm: 'origin',
      host,
      fields,
      contentLength: undefined,
      connectionOptions: [],
    } as const;
    return { protocol: 'http1', method, target, ...rest };
  }
  const section = readRequest(fields, rules);
  return typeof section === 'string' ? section : incomingRequest(section, never);
}

/** What leaves to upstreams of both versions for a request that has these fields, and what is seen on the way. */
function requestLeaves(fields: Fields, one: OneRequest): unknown {
  const request = requestOf(fields, one);
  if (typeof request === 'string') return request;
  const { authority, authorization, keepClientAuthorization, instanceId, upgrade, hasBody } = one;
  const from = withoutCredentials(request);
  const plain: OutgoingRequest = {
    from,
    target: from.target,
    authority,
    authorization,
    keepClientAuthorization,
    instanceId,
    upgrade,
    hasBody,
  };
  const { placement } = one;
  const outgoing =
    placement === undefined
      ? plain
      : { ...plain, from: placement.place(from, authorization), authorization: undefined };
  const lines = upstreamFields(outgoing.from, outgoing, one.form);
  const frames = requestFields(outgoing, one.scheme);
  return {
    from: outgoing.from,
    lines,
    frames,
    head: serializeRequestHead(outgoing.from.method, outgoing.target, lines),
    block: blockOf(frames, outgoing.from.neverIndexed),
  };
}

test('in long random sequences, a repeated request is forwarded as it was the first time', () => {
  fc.assert(
    fc.property(sequenceOf(oneRequest), (sequence) => {
      const arrays = known(REQUESTS);
      for (const one of sequence) {
        const again = requestLeaves(arrays[one.at] as Fields, one);
        expect(again).toEqual(requestLeaves([...(REQUESTS[one.at] as Fields)], one));
      }
      expect(arrays).toEqual(REQUESTS);
      expect(arrays.every(isLasting)).toBe(true);
    }),
    RUNS,
  );
});

const oneAnswer = fc.record({
  status: fc.constantFrom(200, 204, 404),
  at: fc.nat(ANSWERS.length - 1),
  asked: fc.constantFrom<RequestKind>('ordinary', 'head', 'connect'),
  endStream: fc.boolean(),
  reason: fc.constantFrom('', 'OK'),
  body: fc.constantFrom<'chunked' | 'framed' | 'plain'>('chunked', 'framed', 'plain'),
});

type OneAnswer = typeof oneAnswer extends fc.Arbitrary<infer T> ? T : never;

/** What leaves to apps of both versions for an answer that has these fields. */
function answerLeaves(given: Fields, one: OneAnswer): unknown {
  const { asked, endStream, reason, body } = one;
  const isHttp1 = !given[0]?.startsWith(':');
  const answer = isHttp1 ? { status: one.status, fields: given } : readResponse(given, asked, endStream);
  if (typeof answer === 'string') return answer;
  const { status, fields } = answer;
  const head = { status, reason, fields, connectionOptions: [] };
  const lines = responseFields(head, { status, body });
  const frames = responseSection(head);
  return {
    answer,
    lines,
    frames,
    head: serializeResponseHead(status, reason, lines),
    block: blockOf(frames),
  };
}

test('in long random sequences, a repeated answer is forwarded as it was the first time', () => {
  fc.assert(
    fc.property(sequenceOf(oneAnswer), (sequence) => {
      const arrays = known(ANSWERS);
      for (const one of sequence) {
        const again = answerLeaves(arrays[one.at] as Fields, one);
        expect(again).toEqual(answerLeaves([...(ANSWERS[one.at] as Fields)], one));
      }
      expect(arrays).toEqual(ANSWERS);
    }),
    RUNS,
  );
});
