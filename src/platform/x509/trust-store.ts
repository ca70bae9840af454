// Distinguished Encoding Rules (X.690): tag, length, content.

const SEQUENCE = 0x30;
const SET = 0x31;
const OBJECT_IDENTIFIER = 0x06;
const OCTET_STRING = 0x04;
const INTEGER = 0x02;
const BMP_STRING = 0x1e;
const CONTEXT_CONSTRUCTED = 0xa0;

function tagged(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

const sequence = (...content: readonly Buffer[]): Buffer => tagged(SEQUENCE, ...content);

const set = (...content: readonly Buffer[]): Buffer => tagged(SET, ...content);

/** `[number]`, explicit. */
const context = (number: number, ...content: readonly Buffer[]): Buffer =>
  tagged(CONTEXT_CONSTRUCTED | number, ...content);

const octetString = (content: Buffer): Buffer => tagged(OCTET_STRING, content);

/** @param value from 0 to 127. */
const smallInteger = (value: number): Buffer => tagged(INTEGER, Buffer.from([value]));

/** Basic multilingual plane only. */
const bmpString = (text: string): Buffer => tagged(BMP_STRING, Buffer.from(text, 'utf16le').swap16());

/** Such as `1.2.840.113549.1.7.1`. */
function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return tagged(OBJECT_IDENTIFIER, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const octets = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) {
    octets.unshift((rest % 128) | 0x80);
  }
  return octets;
}

function lengthOf(bytes: number): Buffer {
  if (bytes < 0x80) return Buffer.from([bytes]);
  const octets: number[] = [];
  for (let rest = bytes; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return Buffer.from([0x80 | octets.length, ...octets]);
}

const DATA = objectIdentifier('1.2.840.113549.1.7.1');
const CERTIFICATE_BAG = objectIdentifier('1.2.840.113549.1.12.10.1.3');
const X509_CERTIFICATE = objectIdentifier('1.2.840.113549.1.9.22.1');
const FRIENDLY_NAME = objectIdentifier('1.2.840.113549.1.9.20');
/** Java trusts it as an authority, not as part of a chain. */
const TRUSTED_KEY_USAGE = objectIdentifier('2.16.840.1.113894.746875.1.1');
const ANY_EXTENDED_KEY_USAGE = objectIdentifier('2.5.29.37.0');

/**
 * PKCS #12 for the JVM (RFC 7292 §4), neither encrypted nor with an integrity check: certificates are public, and any
 * password opens it.
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

function derOf(pem: string): Buffer {
  const [, base64 = ''] = /-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----/.exec(pem) ?? [];
  return Buffer.from(base64, 'base64');
}
