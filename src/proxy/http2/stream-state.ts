/**
 * The states of a stream (RFC 9113 §5.1), without those that only pushed streams have. Pure: a state and a frame give
 * the next state or an error. Frames are judged here by the state alone; their content is judged elsewhere.
 */

import type { FaultReason } from './errors.ts';

/** How a stream came to its end decides what a late frame of the peer's means. */
type Ending =
  /** Both sides have ended it: the peer can send nothing more. */
  | 'ended'
  /** This side reset it: what the peer sent before it knew is still coming. */
  | 'reset_sent'
  | 'reset_received'
  /** Closed too long ago, or passed over: nothing more is known. */
  | 'forgotten';

export type StreamState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'open' }
  /** One side has ended it, and the other goes on. */
  | { readonly kind: 'half_closed'; readonly endedBy: 'local' | 'remote' }
  | { readonly kind: 'closed'; readonly ending: Ending };

/** Frames that move a stream, or could. */
export type StreamFrame = 'headers' | 'data' | 'reset' | 'window_update';

export type Verdict =
  | { readonly kind: 'next'; readonly state: StreamState }
  /** Legal but meaningless for this stream; flow control and HPACK still apply. */
  | { readonly kind: 'ignored' }
  | { readonly kind: 'stream'; readonly reason: FaultReason }
  | { readonly kind: 'connection'; readonly reason: FaultReason };

export const IDLE: StreamState = { kind: 'idle' };
export const OPEN: StreamState = { kind: 'open' };
export const ENDED_BY_REMOTE: StreamState = { kind: 'half_closed', endedBy: 'remote' };
export const ENDED_BY_LOCAL: StreamState = { kind: 'half_closed', endedBy: 'local' };
export const ENDED: StreamState = { kind: 'closed', ending: 'ended' };
export const RESET_SENT: StreamState = { kind: 'closed', ending: 'reset_sent' };
export const RESET_RECEIVED: StreamState = { kind: 'closed', ending: 'reset_received' };
export const FORGOTTEN: StreamState = { kind: 'closed', ending: 'forgotten' };

const NEXT = new Map<StreamState, Verdict>(
  [IDLE, OPEN, ENDED_BY_REMOTE, ENDED_BY_LOCAL, ENDED, RESET_SENT, RESET_RECEIVED].map((state) => [
    state,
    { kind: 'next', state },
  ]),
);
const IGNORED: Verdict = { kind: 'ignored' };
const STREAM_IDLE: Verdict = { kind: 'connection', reason: 'stream_idle' };
const STREAM_ID_INVALID: Verdict = { kind: 'connection', reason: 'stream_id_invalid' };
const CLOSED_FOR_ALL: Verdict = { kind: 'connection', reason: 'stream_closed' };
const CLOSED: Verdict = { kind: 'stream', reason: 'stream_closed' };
const HALF_CLOSED: Verdict = { kind: 'stream', reason: 'stream_half_closed' };

/**
 * What a peer's frame does to a stream.
 * @param endStream whether it has END_STREAM; of HEADERS and DATA only
 */
export function received(state: StreamState, frame: StreamFrame, endStream: boolean): Verdict {
  const brings = frame === 'headers' || frame === 'data';
  switch (state.kind) {
    case 'idle':
      if (frame !== 'headers') return STREAM_IDLE;
      return next(endStream ? ENDED_BY_REMOTE : OPEN);
    case 'open':
      if (frame === 'reset') return next(RESET_RECEIVED);
      return next(endStream ? ENDED_BY_REMOTE : state);
    case 'half_closed':
      if (frame === 'reset') return next(RESET_RECEIVED);
      if (!brings) return next(state);
      if (state.endedBy === 'remote') return HALF_CLOSED;
      return next(endStream ? ENDED : state);
    case 'closed':
      // RST_STREAM and WINDOW_UPDATE may cross with what closed the stream; an answer to them would only cross again.
      if (!brings) return IGNORED;
      switch (state.ending) {
        case 'ended':
          return CLOSED_FOR_ALL;
        case 'reset_sent':
          return IGNORED;
        case 'reset_received':
          return CLOSED;
        case 'forgotten':
          return frame === 'headers' ? STREAM_ID_INVALID : CLOSED;
      }
  }
}

/** The state of a stream after a frame of this side; undefined if it must not be sent. */
export function sent(state: StreamState, frame: StreamFrame, endStream: boolean): StreamState | undefined {
  const brings = frame === 'headers' || frame === 'data';
  switch (state.kind) {
    case 'idle':
      if (frame !== 'headers') return undefined;
      return endStream ? ENDED_BY_LOCAL : OPEN;
    case 'open':
      if (frame === 'reset') return RESET_SENT;
      return endStream ? ENDED_BY_LOCAL : state;
    case 'half_closed':
      if (frame === 'reset') return RESET_SENT;
      if (!brings) return state;
      if (state.endedBy === 'local') return undefined;
      return endStream ? ENDED : state;
    case 'closed':
      return undefined;
  }
}

function next(state: StreamState): Verdict {
  return NEXT.get(state) as Verdict;
}
