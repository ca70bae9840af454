/** The token that a request brings, to be exchanged for another (RFC 8693). */

import { SidecarError } from '../../platform/errors.ts';
import type { BearerSource } from '../../token/bearer-source.ts';
import { fieldValues } from '../http/fields.ts';
import type { ActiveRoute } from '../routing/active-route.ts';
import type { IncomingRequest } from '../streams/message.ts';

/** RFC 6750 §2.1, widened to all visible ASCII. */
const BEARER = /^bearer +([\x21-\x7e]{1,16384})$/i;

/**
 * The source of the request's token; on most routes the same for every request.
 * @param caller unique to the caller, where callers are told apart.
 * @throws {SidecarError} `subject_token_missing`.
 */
export function bearerFor(
  { bearer, config }: ActiveRoute,
  { fields }: IncomingRequest,
  caller: string | undefined,
): BearerSource | undefined {
  if (bearer?.bySubject === undefined) return bearer;
  const values = fieldValues(fields, 'authorization');
  const subject = values.length === 1 ? BEARER.exec(values[0] as string)?.[1] : undefined;
  if (subject === undefined) {
    throw new SidecarError(
      'subject_token_missing',
      `route ${config.name} exchanges the token of the request, which has to have one: Authorization: Bearer, once, up to 16 KiB`,
    );
  }
  return bearer.bySubject(subject, caller);
}
