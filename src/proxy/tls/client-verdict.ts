import { systemCodeOf } from '../../errors.ts';

/** How a handshake with an app failed. */
export type HandshakeFailure = 'client_rejected_certificate' | 'client_tls_error';

/**
 * Some clients judge a certificate when they have seen all (Node), or when the handshake is over (wget): one that hangs up so
 * soon after it was shown, and has asked nothing, has rejected it.
 */
export const VERDICT_MS = 1_000;

/**
 * Alerts by which a client says that it does not trust what it was shown (RFC 8446 §6.2), as OpenSSL names them. Go says
 * bad_certificate, OpenSSL unknown_ca, Java certificate_unknown.
 */
const REJECTIONS =
  /ALERT_(?:BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REVOKED|EXPIRED|UNKNOWN)|UNKNOWN_CA|ACCESS_DENIED)$/;

/** A client that is there no more says nothing: Node has one of these for it, or no error at all. */
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
