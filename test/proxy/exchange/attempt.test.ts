import { expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import { type Attempt, attemptAfter } from '../../../src/proxy/exchange/attempt.ts';
import { ErrorCode } from '../../../src/proxy/http2/error-code.ts';
import { UpstreamReset } from '../../../src/proxy/streams/upstream-reset.ts';
import type { RequestFate } from '../../../src/proxy/streams/upstream-stream.ts';

const BROKEN = new SidecarError('upstream_protocol_error', 'broke off');
const REFUSED = new UpstreamReset('refused', ErrorCode.REFUSED_STREAM);
const ALL = { whole: true, repeatable: true };
const POST = { whole: true, repeatable: false };
const TORN = { whole: false, repeatable: false };

it.each<[RequestFate, SidecarError<'upstream_protocol_error'>, typeof ALL, Attempt['kind'] | undefined]>([
  ['unsent', BROKEN, POST, 'anew'],
  ['unsent', BROKEN, TORN, undefined],
  ['unprocessed', BROKEN, POST, 'anew'],
  ['unprocessed', REFUSED as typeof BROKEN, POST, 'after-refusal'],
  ['unprocessed', REFUSED as typeof BROKEN, TORN, undefined],
  ['unanswered', BROKEN, ALL, 'anew'],
  ['unanswered', BROKEN, POST, undefined],
  ['lost', BROKEN, ALL, undefined],
  // A reset says no more of a request than its fate does.
  ['lost', REFUSED as typeof BROKEN, ALL, undefined],
])('after a first attempt that was %s (%s, %o): %s', (fate, error, request, kind) => {
  expect(attemptAfter({ kind: 'first' }, error, fate, request)?.kind).toBe(kind);
});

it.each(['anew', 'after-refusal'] as const)('after one that was made %s there is none', (kind) => {
  for (const fate of ['unsent', 'unprocessed', 'unanswered', 'lost'] as const) {
    expect(attemptAfter({ kind }, BROKEN, fate, ALL)).toBeUndefined();
    expect(attemptAfter({ kind }, REFUSED, fate, ALL)).toBeUndefined();
  }
});
