import { systemCodeOf } from '../../errors.ts';

/** How a handshake with an app failed. */
export type HandshakeFailure = 'client_rejected_certificate' | 'client_tls_error';

/**
 * Some clients judge a certificate only after all messages (Node), or after the handshake (wget): one that hangs up
 * this soon after it was shown, having asked nothing, has rejected it.
 */
export const VERDICT_MS = 1_000;

/**
 * Alerts of a client that does not trust what it was shown (RFC 8446 §6.2), as OpenSSL names them. Go says
 * bad_certificate, OpenSSL unknown_ca, Java certificate_unknown.
 */
const REJECTIONS =
  /ALERT_(?:BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REVOKED|EXPIRED|UNKNOWN)|UNKNOWN_CA|ACCESS_DENIED)$/;

/** A client that hangs up sends no alert: Node reports one of these, or no error at all. */
const HUNG_UP: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/**
 * What became of a handshake that ended after the certificate was shown.
 * @param error undefined where the client has hung up without a word.
 */
export function failureOf(error: Error | undefined, sinceShownMs: number): HandshakeFailure {
  const code = systemCodeOf(error) ?? '';
  const hungUp = (error === undefined || HUNG_UP.has(code)) && sinceShownMs < VERDICT_MS;
  return hungUp || REJECTIONS.test(code) ? 'client_rejected_certificate' : 'client_tls_error';
}
