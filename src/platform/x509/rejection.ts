import { systemCodeOf } from '../errors.ts';

/** Of a peer that does not trust the certificate it was shown (RFC 8446 §6.2), as OpenSSL names them. */
const REJECTIONS =
  /ALERT_(BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REVOKED|EXPIRED|UNKNOWN)|UNKNOWN_CA|ACCESS_DENIED)$/;

/**
 * The alert by which a peer rejected our certificate, such as `bad certificate`; undefined where a handshake failed for
 * another reason. Go says bad_certificate of a wrong name and of an unknown CA alike, OpenSSL unknown_ca, Java
 * certificate_unknown.
 */
export function rejectionOf(error: Error | undefined): string | undefined {
  return REJECTIONS.exec(systemCodeOf(error) ?? '')?.[1]
    ?.toLowerCase()
    .replaceAll('_', ' ');
}
