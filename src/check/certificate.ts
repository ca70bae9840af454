/** Describes a certificate in printable words: its content comes from whoever answers. */

import type { X509Certificate } from 'node:crypto';
import { getCACertificates, rootCertificates } from 'node:tls';

const DAY_MS = 86_400_000;

/** Fewer days, or less than a fifth of a shorter life, need attention. */
const ATTENTION_DAYS = 14;
const ATTENTION_OF_LIFE = 0.2;

export type Validity =
  | { readonly state: 'valid' | 'ending'; readonly daysLeft: number }
  | { readonly state: 'ended' | 'not_yet'; readonly date: string };

export function validityOf({ validFrom, validTo }: X509Certificate, nowMs: number): Validity {
  const [fromMs, toMs] = [Date.parse(validFrom), Date.parse(validTo)];
  if (nowMs > toMs) return { state: 'ended', date: dateOf(toMs) };
  if (nowMs < fromMs) return { state: 'not_yet', date: dateOf(fromMs) };
  const left = toMs - nowMs;
  const isEnding = left < Math.min(ATTENTION_DAYS * DAY_MS, (toMs - fromMs) * ATTENTION_OF_LIFE);
  return { state: isEnding ? 'ending' : 'valid', daysLeft: Math.floor(left / DAY_MS) };
}

function dateOf(ms: number): string {
  return Number.isNaN(ms) ? 'an unknown date' : new Date(ms).toISOString().slice(0, 10);
}

/** `61 days left`, or since when it is invalid. */
export function describeValidity(validity: Validity): string {
  switch (validity.state) {
    case 'ended':
      return `ended on ${validity.date}`;
    case 'not_yet':
      return `valid from ${validity.date} on`;
    default:
      return validity.daysLeft === 1 ? '1 day left' : `${validity.daysLeft} days left`;
  }
}

/** The names that a certificate covers: `sso.example.com and 2 more`. */
export function namesOf({ subjectAltName, subject }: X509Certificate): string {
  const names = (subjectAltName ?? '')
    .split(', ')
    .flatMap((entry) => /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1] ?? []);
  const [first, ...more] = names;
  if (first === undefined) return commonName(subject);
  return more.length === 0 ? shown(first) : `${shown(first)} and ${more.length} more`;
}

/** The common part of a distinguished name in Node's notation. */
export function commonName(name: string | undefined): string {
  for (const part of ['CN', 'OU', 'O']) {
    const value = new RegExp(`^${part}=(.+)$`, 'm').exec(name ?? '')?.[1];
    if (value !== undefined) return shown(value);
  }
  return '(no name)';
}

const MAX_NAME_LENGTH = 80;

function shown(text: string): string {
  const plain = text.replace(/[^\x20-\x7e]+/g, '?');
  return plain.length > MAX_NAME_LENGTH ? `${plain.slice(0, MAX_NAME_LENGTH)}…` : plain;
}

/** Whose list contains an authority. @param caFile of the settings, which replaces all other lists. */
export function trustedBy(root: X509Certificate, caFile: string | undefined): string {
  if (caFile !== undefined) return `of ${caFile}`;
  const own = root.raw.toString('base64');
  const isIn = (list: readonly string[]) =>
    list.some((pem) => pem.replace(/-----[^-]+-----|\s/g, '') === own);
  if (isIn(rootCertificates)) return "of Node's own list";
  return isIn(getCACertificates('extra')) ? 'of NODE_EXTRA_CA_CERTS' : "of the system's list";
}
