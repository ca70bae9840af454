import { X509Certificate } from 'node:crypto';
import { basename, join } from 'node:path';
import { getCACertificates, rootCertificates } from 'node:tls';
import type { TlsConfig } from '../config/config.ts';
import { MAX_PEM_BYTES, readBoundedFile } from '../platform/files/bounded-file.ts';
import { certificatesIn } from '../platform/x509/pem.ts';
import { type About, type Finding, wordsFor } from './check-context.ts';
import type { StepName } from './steps.ts';

const MAX_CERTIFICATES = 500;

type Step = Extract<StepName, 'certificate_files' | 'upstream_certificates'>;

/** @param identityFile a client certificate in the mounted Secret. */
export async function checkCertificateFiles(
  { caFile, certFile }: Pick<TlsConfig, 'caFile' | 'certFile'>,
  identityFile: string | undefined,
  step: Step,
  of: About,
  nowMs: number,
): Promise<Finding[]> {
  const authorities = caFile === undefined ? [] : [checkFile(caFile, 'any', step, of, nowMs)];
  const own = [certFile, identityFile]
    .filter((path) => path !== undefined)
    .map((path) => checkFile(path, 'first', step, of, nowMs));
  return await Promise.all([...authorities, ...own]);
}

/** @param counts of authorities any valid certificate counts, of a chain the client's own. */
async function checkFile(
  path: string,
  counts: 'any' | 'first',
  step: Step,
  of: About,
  nowMs: number,
): Promise<Finding> {
  let pem: string;
  try {
    pem = await readBoundedFile(path, MAX_PEM_BYTES);
  } catch (error) {
    const why = wordsFor(error);
    return of.failure(step, 'configuration', `${path}: ${why}`, 'let the sidecar read the file');
  }
  const certificates = certificatesIn(pem, MAX_CERTIFICATES);
  const [first] = certificates;
  if (first === undefined) {
    return of.failure(
      step,
      'configuration',
      `${path} holds no PEM certificate`,
      'check that it is the right file',
    );
  }
  const judged = counts === 'first' ? [first] : certificates;
  const all = judged.map((certificate) => ({ certificate, validity: validityOf(certificate, nowMs) }));
  const best = all.toSorted((a, b) => lifeLeft(b.validity) - lifeLeft(a.validity))[0] as (typeof all)[number];
  const more = certificates.length > 1 && counts === 'any' ? ` (the longest of ${certificates.length})` : '';
  const detail = `${path}: ${commonName(best.certificate.subject)}, ${describeValidity(best.validity)}${more}`;
  switch (best.validity.state) {
    case 'valid':
      return of.ok(step, detail);
    case 'ending':
      return of.warning(
        step,
        detail,
        `renew ${basename(path)}: the sidecar takes the new file as soon as it is there`,
      );
    default:
      return of.failure(step, 'configuration', detail, `renew ${basename(path)}, or set the clock`);
  }
}

function lifeLeft(validity: Validity): number {
  return 'daysLeft' in validity ? validity.daysLeft : -1;
}

const DAY_MS = 86_400_000;

/** Fewer days, or a fifth of a shorter life, need attention. */
const ATTENTION_DAYS = 14;
const ATTENTION_OF_LIFE = 0.2;

type Validity =
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

/** `61 days left` */
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

/** `sso.example.com and 2 more`. */
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

/** A certificate's text comes from whoever answers. */
const MAX_NAME_LENGTH = 80;

function shown(text: string): string {
  const plain = text.replace(/[^\x20-\x7e]+/g, '?');
  return plain.length > MAX_NAME_LENGTH ? `${plain.slice(0, MAX_NAME_LENGTH)}…` : plain;
}

/** @param caFile replaces all other lists. */
export function trustedBy(root: X509Certificate, caFile: string | undefined): string {
  if (caFile !== undefined) return `of ${caFile}`;
  const own = root.raw.toString('base64');
  const isIn = (list: readonly string[]) =>
    list.some((pem) => pem.replace(/-----[^-]+-----|\s/g, '') === own);
  if (isIn(rootCertificates)) return "of Node's own list";
  return isIn(getCACertificates('extra')) ? 'of NODE_EXTRA_CA_CERTS' : "of the system's list";
}

export const sidecarRoot = {
  fileIn(directory: string): string {
    return join(directory, 'ca.crt');
  },

  /** @throws if none can be read. */
  async read(directory: string): Promise<X509Certificate> {
    return new X509Certificate(await readBoundedFile(sidecarRoot.fileIn(directory), MAX_PEM_BYTES));
  },

  /**
   * Judged by signatures, since anybody can use the sidecar's name.
   * @param chain the server's own first.
   */
  async isBehind(chain: readonly X509Certificate[], directory: string | undefined): Promise<boolean> {
    if (directory === undefined || chain.length === 0) return false;
    const root = await sidecarRoot.read(directory).catch(() => undefined);
    if (root === undefined) return false;
    const issuers = [...chain.slice(1).filter(({ raw }) => !raw.equals(root.raw)), root];
    return issuers.every((issuer, index) => chain[index]?.verify(issuer.publicKey) === true);
  },
};
