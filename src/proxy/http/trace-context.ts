/** Trace Context (W3C Recommendation, level 1): the trace that a request belongs to. */

import { type Fields, fieldValues } from './fields.ts';
import { ownText } from './own-text.ts';

export const TRACEPARENT_FIELD = 'traceparent';
export const TRACESTATE_FIELD = 'tracestate';

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** Of the span that sent the request: 16 hexadecimal digits. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Version, trace, span and flags; later versions may add more behind a dash. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

const SAMPLED = 0x01;

/** What `traceparent` says; undefined where there is none, or one that is to be ignored (§3.2.2). */
export function traceContextOf(fields: Fields): TraceContext | undefined {
  const [value, ...others] = fieldValues(fields, TRACEPARENT_FIELD);
  if (value === undefined || others.length > 0) return undefined;
  const [, version = '', traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(value) ?? [];
  if (version === '' || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  // Copied, because spans awaiting export and exemplars keep them.
  return {
    traceId: ownText(traceId),
    spanId: ownText(spanId),
    sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0,
  };
}

/** In the format of version 00. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
