/** Certificates in files: how long they remain valid. The configuration has made sure that they are certificates. */

import { basename } from 'node:path';
import type { TlsConfig } from '../config/config.ts';
import { MAX_PEM_BYTES, readBoundedFile } from '../platform/files/bounded-file.ts';
import { certificatesIn } from '../platform/x509/pem.ts';
import { commonName, describeValidity, type Validity, validityOf } from './certificate.ts';
import { wordsFor } from './examination.ts';
import type { About, Finding } from './finding.ts';
import type { StepName } from './steps.ts';

/** No more of a bundle are examined. */
const MAX_CERTIFICATES = 500;

type Step = Extract<StepName, 'certificate_files' | 'upstream_certificates'>;

/** @param identityFile a client certificate in the mounted Secret. */
export async function examineCertificateFiles(
  { caFile, certFile }: Pick<TlsConfig, 'caFile' | 'certFile'>,
  identityFile: string | undefined,
  step: Step,
  of: About,
  nowMs: number,
): Promise<Finding[]> {
  const authorities = caFile === undefined ? [] : [examineFile(caFile, 'any', step, of, nowMs)];
  const own = [certFile, identityFile]
    .filter((path) => path !== undefined)
    .map((path) => examineFile(path, 'first', step, of, nowMs));
  return await Promise.all([...authorities, ...own]);
}

/** @param counts in a bundle of authorities any valid one will do; in a chain, the first is the client's own. */
async function examineFile(
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
