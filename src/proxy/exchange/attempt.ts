import type { ProxyErrorCode, SidecarError } from '../../errors.ts';
import type { IncomingRequest } from '../streams/message.ts';
import { UpstreamReset } from '../streams/upstream-reset.ts';
import type {
  RequestFate,
  UpstreamStream,
  UpstreamStreams,
  UpstreamUser,
} from '../streams/upstream-stream.ts';

/**
 * What a request is sent on. Each token has one first attempt, and at most one after that: which of the two others it is
 * depends on how the first one failed.
 */
export type Attempt =
  /** On whatever has room; one that was quiet for too long is examined first. */
  | { readonly kind: 'first' }
  /** On a connection that is made for it: the one before has ended, and its neighbours most likely with it. */
  | { readonly kind: 'anew' }
  /** On another connection, or the same again: the upstream refused it there, and the connection goes on. */
  | { readonly kind: 'after-refusal' };

export const FIRST: Attempt = { kind: 'first' };
const ANEW: Attempt = { kind: 'anew' };
const AFTER_REFUSAL: Attempt = { kind: 'after-refusal' };

/**
 * The attempt after one that failed; undefined where there is none.
 * @param repeatable whether the request may be sent twice: it is whole, and doing it twice does nothing twice.
 */
export function attemptAfter(
  failed: Attempt,
  error: SidecarError<ProxyErrorCode>,
  fate: RequestFate,
  { whole, repeatable }: { readonly whole: boolean; readonly repeatable: boolean },
): Attempt | undefined {
  if (failed.kind !== 'first') return undefined;
  switch (fate) {
    case 'unprocessed':
      if (!whole) return undefined;
      return error instanceof UpstreamReset ? AFTER_REFUSAL : ANEW;
    case 'unsent':
      return whole ? ANEW : undefined;
    case 'unanswered':
      return repeatable ? ANEW : undefined;
    case 'lost':
      return undefined;
  }
}

/**
 * A stream for an attempt; unless it is ready, the user's `connected` is called when it is.
 * @param trustMs as in `UpstreamStreams.acquire`.
 * @throws {SidecarError} `overloaded`.
 */
export function acquireFor(
  { kind }: Attempt,
  streams: UpstreamStreams,
  request: IncomingRequest,
  user: UpstreamUser,
  trustMs: number,
): UpstreamStream {
  switch (kind) {
    case 'first':
      return streams.acquire(request, user, trustMs);
    case 'anew':
      return streams.acquireNew(request, user);
    case 'after-refusal':
      return streams.acquireAgain(request, user);
  }
}
