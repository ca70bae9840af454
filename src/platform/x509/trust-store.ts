import { bmpString, context, objectIdentifier, octetString, sequence, set, smallInteger } from './der.ts';
import { derOf } from './pem.ts';

const DATA = objectIdentifier('1.2.840.113549.1.7.1');
const CERTIFICATE_BAG = objectIdentifier('1.2.840.113549.1.12.10.1.3');
const X509_CERTIFICATE = objectIdentifier('1.2.840.113549.1.9.22.1');
const FRIENDLY_NAME = objectIdentifier('1.2.840.113549.1.9.20');
/** Tells Java that a certificate is trusted, and not part of a chain. */
const TRUSTED_KEY_USAGE = objectIdentifier('2.16.840.1.113894.746875.1.1');
const ANY_EXTENDED_KEY_USAGE = objectIdentifier('2.5.29.37.0');

/**
 * A trust store for the JVM: PKCS #12 (RFC 7292 §4) with only certificates, which are public. So nothing is encrypted,
 * and no password proves its integrity: any password opens it, and none.
 * @param certificates PEM.
 */
export function trustStoreOf(certificates: readonly string[]): Buffer {
  const bags = certificates.map((pem, index) => certificateBag(derOf(pem), `trusted-${index}`));
  const contents = sequence(contentInfo(sequence(...bags)));
  return sequence(smallInteger(3), contentInfo(contents));
}

function contentInfo(content: Buffer): Buffer {
  return sequence(DATA, context(0, octetString(content)));
}

function certificateBag(certificate: Buffer, name: string): Buffer {
  return sequence(
    CERTIFICATE_BAG,
    context(0, sequence(X509_CERTIFICATE, context(0, octetString(certificate)))),
    set(
      sequence(FRIENDLY_NAME, set(bmpString(name))),
      sequence(TRUSTED_KEY_USAGE, set(ANY_EXTENDED_KEY_USAGE)),
    ),
  );
}
