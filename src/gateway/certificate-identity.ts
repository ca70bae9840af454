/** The caller that a verified client certificate names. Pure. */

import { AsnConvert } from '@peculiar/asn1-schema';
import { Certificate, id_ce_subjectAltName, SubjectAlternativeName } from '@peculiar/asn1-x509';
import type { CertificateCaller, SpiffeCaller } from '../callers/caller.ts';

type NamedByCertificate =
  | { readonly kind: 'named'; readonly caller: SpiffeCaller | CertificateCaller }
  /** @property why completes "the client certificate …". */
  | { readonly kind: 'nobody'; readonly why: string };

/** SPIFFE-ID §2: a trust domain, then path segments; no other part of a URI. Characters. */
const MAX_SPIFFE_ID_LENGTH = 2048;
const SPIFFE_ID = /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)*$/;
const ANY_SPIFFE = /^spiffe:/i;

const DNS_NAME = /^[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*$/;
const MAX_DNS_NAME_LENGTH = 253;

const COMMON_NAME = '2.5.4.3';
const MAX_COMMON_NAME_LENGTH = 64;

/** A certificate may have many; a few suffice to identify a caller. */
const MAX_NAMES = 32;

/**
 * The SPIFFE id if there is one: it must stand alone, as a second URI makes the certificate invalid (X.509-SVID §2).
 * Otherwise the DNS names, in lower case; the common name only if there are no alternative names at all (RFC 9525 §2).
 * @param der of the leaf.
 */
export function identityOf(der: Buffer): NamedByCertificate {
  let parsed: Certificate;
  let alternatives: SubjectAlternativeName | undefined;
  try {
    parsed = AsnConvert.parse(der, Certificate);
    const extensions = (parsed.tbsCertificate.extensions ?? []).filter(
      ({ extnID }) => extnID === id_ce_subjectAltName,
    );
    if (extensions.length > 1) return nobody('has its alternative names twice');
    const [extension] = extensions;
    alternatives = extension && AsnConvert.parse(extension.extnValue.buffer, SubjectAlternativeName);
  } catch {
    return nobody('cannot be read');
  }
  if (alternatives === undefined) return byCommonName(parsed);
  const uris = alternatives.flatMap(({ uniformResourceIdentifier: uri }) => (uri === undefined ? [] : [uri]));
  if (uris.some((uri) => ANY_SPIFFE.test(uri))) return bySpiffeId(uris);
  const names = alternatives.flatMap(({ dNSName }) => (dNSName === undefined ? [] : [dNSName]));
  return byDnsNames(names);
}

function bySpiffeId(uris: readonly string[]): NamedByCertificate {
  const [id = ''] = uris;
  if (uris.length > 1) return nobody('has more than one URI, beside which a SPIFFE id is not believed');
  if (id.length > MAX_SPIFFE_ID_LENGTH || !SPIFFE_ID.test(id)) return nobody('has a SPIFFE id that is none');
  return { kind: 'named', caller: { kind: 'spiffe', uri: id } };
}

function byDnsNames(names: readonly string[]): NamedByCertificate {
  if (names.length > MAX_NAMES) return nobody(`has more than ${MAX_NAMES} DNS names`);
  const usable = names.filter((name) => name.length <= MAX_DNS_NAME_LENGTH && DNS_NAME.test(name));
  // A wildcard names servers.
  if (usable.length === 0) return nobody('has neither a SPIFFE id nor a DNS name');
  const sorted = [...new Set(usable.map((name) => name.toLowerCase()))].sort();
  return { kind: 'named', caller: { kind: 'certificate', by: 'dns_names', names: sorted } };
}

function byCommonName({ tbsCertificate: { subject } }: Certificate): NamedByCertificate {
  const values = [...subject].flatMap((part) =>
    [...part].filter(({ type }) => type === COMMON_NAME).map(({ value }) => value.toString()),
  );
  const [name = ''] = values;
  if (values.length !== 1 || name === '' || name.length > MAX_COMMON_NAME_LENGTH) {
    return nobody('has no alternative names, and not one common name');
  }
  return { kind: 'named', caller: { kind: 'certificate', by: 'common_name', names: [name] } };
}

function nobody(why: string): NamedByCertificate {
  return { kind: 'nobody', why };
}
