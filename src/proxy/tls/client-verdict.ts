import { systemCodeOf } from '../../platform/errors.ts';
import { rejectionOf } from '../../platform/x509/rejection.ts';

/** How a handshake with an app failed. */
type HandshakeFailure = 'client_rejected_certificate' | 'client_tls_error';

/**
 * Some clients judge a certificate only after all messages (Node), or after the handshake (wget): one that hangs up
 * this soon after it was shown, having asked nothing, has rejected it.
 */
export const VERDICT_MS = 1_000;

/** A client that hangs up sends no alert: Node reports one of these, or no error at all. */
const HUNG_UP: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * What became of a handshake that ended after the certificate was shown.
 * @param error undefined where the client has hung up without a word.
 */
export function failureOf(error: Error | undefined, sinceShownMs: number): HandshakeFailure {
  const isGone = error === undefined || HUNG_UP.has(systemCodeOf(error) ?? '');
  const isRejection = (isGone && sinceShownMs < VERDICT_MS) || rejectionOf(error) !== undefined;
  return isRejection ? 'client_rejected_certificate' : 'client_tls_error';
}
