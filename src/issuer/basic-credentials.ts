import { decodeFormComponent } from '../platform/form.ts';

/** One reading of a Basic field: the claimed identity, and the proof. */
interface ClaimedCredentials {
  readonly clientId: string;
  readonly secret: string;
}

/**
 * The readings of an Authorization field: as it stands (RFC 7617 §2) and, if that differs, form-decoded (RFC 6749
 * §2.3.1). Id and secret are always read in the same way. None if the field is no well-formed Basic: it must be the one
 * canonical Base64 encoding of UTF-8 text with a colon; the first colon separates.
 */
export function readBasicCredentials(field: string): readonly ClaimedCredentials[] {
  const [, encoded] = /^basic +([a-z0-9+/]+={0,2})$/i.exec(field) ?? [];
  if (encoded === undefined) return [];
  const bytes = Buffer.from(encoded, 'base64');
  // Buffer skips invalid characters; only a field that survives the round trip was Base64.
  if (bytes.toString('base64') !== encoded) return [];
  let pair: string;
  try {
    pair = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return [];
  }
  const colon = pair.indexOf(':');
  if (colon < 0) return [];

  const raw = { clientId: pair.slice(0, colon), secret: pair.slice(colon + 1) };
  const clientId = decodeFormComponent(raw.clientId);
  const secret = decodeFormComponent(raw.secret);
  if (clientId === undefined || secret === undefined) return [raw];
  return clientId === raw.clientId && secret === raw.secret ? [raw] : [raw, { clientId, secret }];
}
