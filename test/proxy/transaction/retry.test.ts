import { expect, it } from 'vitest';
import { SidecarError } from '../../../src/platform/errors.ts';
import { ErrorCode } from '../../../src/proxy/http2/errors.ts';
import { type Delivery, UpstreamReset } from '../../../src/proxy/streams/contract.ts';
import { attemptAfter } from '../../../src/proxy/transaction/retry.ts';

const BROKEN = new SidecarError('upstream_protocol_error', 'broke off');
const REFUSED = new UpstreamReset('refused', ErrorCode.REFUSED_STREAM);
const ALL = { whole: true, repeatable: true };
const POST = { whole: true, repeatable: false };
const TORN = { whole: false, repeatable: false };

it.each<
  [Delivery, SidecarError<'upstream_protocol_error'>, typeof ALL, 'anew' | 'after-refusal' | undefined]
>([
  ['unsent', BROKEN, POST, 'anew'],
  ['unsent', BROKEN, TORN, undefined],
  ['unprocessed', BROKEN, POST, 'anew'],
  ['unprocessed', REFUSED as typeof BROKEN, POST, 'after-refusal'],
  ['unprocessed', REFUSED as typeof BROKEN, TORN, undefined],
  ['unanswered', BROKEN, ALL, 'anew'],
  ['unanswered', BROKEN, POST, undefined],
  ['lost', BROKEN, ALL, undefined],
  // A reset says no more of a request than how it was delivered.
  ['lost', REFUSED as typeof BROKEN, ALL, undefined],
])('the retry after a first attempt that was %s (%s, %o) is %s', (delivery, error, request, kind) => {
  expect(attemptAfter({ kind: 'first' }, error, delivery, request)?.kind).toBe(kind);
});

it.each(['anew', 'after-refusal'] as const)('there is no further retry after one made %s', (kind) => {
  for (const delivery of ['unsent', 'unprocessed', 'unanswered', 'lost'] as const) {
    expect(attemptAfter({ kind }, BROKEN, delivery, ALL)).toBeUndefined();
    expect(attemptAfter({ kind }, REFUSED, delivery, ALL)).toBeUndefined();
  }
});
