import { systemCodeOf } from '../errors.ts';

/** Alerts about certificates (RFC 8446 §6.2), as OpenSSL names them. */
const REJECTIONS =
  /ALERT_(BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REVOKED|EXPIRED|UNKNOWN)|UNKNOWN_CA|ACCESS_DENIED)$/;

/**
 * Such as `bad certificate`; undefined if the handshake failed otherwise. For an unknown CA, Go says bad_certificate,
 * OpenSSL unknown_ca, Java certificate_unknown.
 */
export function rejectionOf(error: Error | undefined): string | undefined {
  return REJECTIONS.exec(systemCodeOf(error) ?? '')?.[1]
    ?.toLowerCase()
    .replaceAll('_', ' ');
}
