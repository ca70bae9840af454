/**
 * Trailer fields that could sway what has been decided are dropped, as in every version of HTTP. Those that frame the
 * body or close the connection are refused instead: some readers heed them even in trailers, and nobody puts them there
 * in good faith.
 */

import { permittedTrailers } from '../http/trailer-fields.ts';
import type { FieldLines } from './field-lines.ts';
import type { RefusalReason } from './message-refused.ts';

const REFUSED = /^(?:content-length|transfer-encoding|connection|proxy-connection)$/i;

/** The fields that a trailer section may hold, in order. */
export function readTrailers(fields: FieldLines): FieldLines | RefusalReason {
  for (let at = 0; at < fields.length; at += 2) {
    if (REFUSED.test(fields[at] as string)) return 'control_in_trailers';
  }
  return permittedTrailers(fields);
}
