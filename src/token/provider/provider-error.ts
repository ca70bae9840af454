/** A provider's words on a refusal (RFC 6749 §5.2), made short and free of secrets. */

interface ProviderError {
  readonly code: string;
  readonly description?: string;
}

/** RFC 6749 §5.2 and extensions. Shown even if a client has such a name. */
const REGISTERED_ERRORS: ReadonlySet<string> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
  'access_denied',
  'server_error',
  'temporarily_unavailable',
  'slow_down',
  // RFC 9449 §5 and §8.
  'invalid_dpop_proof',
  'use_dpop_nonce',
]);

/** In characters. */
const MAX_CODE_LENGTH = 64;
const MAX_DESCRIPTION_LENGTH = 200;

/** Characters. Searching a page for secrets takes long. */
const MAX_READ_LENGTH = 4096;

const WITHHELD = '[…]';

/** Also reads an object in place of `error`, as some APIs send it. */
export function readProviderError(
  fields: Readonly<Record<string, unknown>> | undefined,
): ProviderError | undefined {
  if (fields === undefined) return undefined;
  const { error } = fields;
  if (typeof error === 'string' && error !== '') {
    return providerError(error, fields['error_description'] ?? fields['message']);
  }
  if (typeof error !== 'object' || error === null) return undefined;
  const inner = error as Readonly<Record<string, unknown>>;
  const code = [inner['error'], inner['code'], inner['type'], inner['status']].find(isNameOrNumber);
  return providerError(String(code ?? 'error'), inner['message'] ?? inner['description']);
}

function providerError(code: string, description: unknown): ProviderError {
  return typeof description === 'string' && description !== '' ? { code, description } : { code };
}

function isNameOrNumber(value: unknown): value is string | number {
  return (typeof value === 'string' && value !== '') || typeof value === 'number';
}

/** @param secrets must not appear in it, in any form. */
export function showProviderError({ code, description }: ProviderError, secrets: readonly string[]): string {
  const shown = REGISTERED_ERRORS.has(code) ? code : cleaned(code, secrets, MAX_CODE_LENGTH);
  return description === undefined
    ? shown
    : `${shown}: ${cleaned(description, secrets, MAX_DESCRIPTION_LENGTH)}`;
}

function cleaned(text: string, secrets: readonly string[], longest: number): string {
  if (text.length > MAX_READ_LENGTH) return WITHHELD;
  // In this order: invisible characters might split a secret, a cut might shorten it.
  let shown = plain(text);
  // The longest first: a shorter one may be a part of it.
  for (const secret of [...secrets].sort((a, b) => b.length - a.length)) shown = withhold(shown, secret);
  shown = shown.replace(/[A-Za-z0-9_~+/=.%-]{16,}/g, (word) => (looksLikeToken(word) ? WITHHELD : word));
  return shown.length > longest ? `${shown.slice(0, longest - 1)}…` : shown;
}

function plain(text: string): string {
  return withoutReferences(text)
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .replace(/[\p{C}\p{Z}\s]+/gu, ' ')
    .trim();
}

const NAMED_REFERENCES: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
};

/** Some providers repeat input with HTML character references. */
function withoutReferences(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(amp|lt|gt|quot|apos));/gi,
    (whole, hexadecimal: string | undefined, decimal: string | undefined, name: string | undefined) => {
      if (name !== undefined) return NAMED_REFERENCES[name.toLowerCase()] ?? whole;
      const code = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}

function withhold(text: string, secret: string): string {
  if (secret === '') return text;
  // Around a secret this short, the rest of the text would show where it stood.
  if (secret.length < 3) return text.includes(secret) ? WITHHELD : text;
  const forms = [
    secret,
    plain(secret),
    encodeURIComponent(secret),
    new URLSearchParams({ '': secret }).toString().slice(1),
    Buffer.from(secret).toString('base64'),
    Buffer.from(secret).toString('base64').replaceAll('=', ''),
    Buffer.from(secret).toString('base64url'),
    JSON.stringify(secret).slice(1, -1),
  ];
  let shown = text;
  for (const form of forms.filter((one) => one !== '').sort((a, b) => b.length - a.length)) {
    // In any case: providers change upper and lower case.
    shown = shown.replace(new RegExp(form.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'giu'), WITHHELD);
  }
  return shown;
}

/** With digits, or very long, words may be secrets; others are names of errors. */
function looksLikeToken(word: string): boolean {
  return /\d/.test(word) || word.length > 48 || /[a-z][A-Z].*[a-z][A-Z].*[a-z][A-Z]/.test(word);
}
