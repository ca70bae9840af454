/** Certificates of one authority, made by openssl for one run: whole, expired, for another name, by a stranger. */

import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const openssl = promisify(execFile);

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface Certificates {
  readonly caFile: string;
  readonly whole: Certificate;
  readonly expired: Certificate;
  readonly otherName: Certificate;
  readonly otherAuthority: Certificate;
}

export async function makeCertificates(directory: string): Promise<Certificates> {
  const path = (name: string) => join(directory, name);
  const run = (...args: string[]) => openssl('openssl', args, { cwd: directory });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

  async function makeAuthority(name: string): Promise<void> {
    const files = ['-keyout', `${name}.key`, '-out', `${name}.crt`];
    await run('req', '-x509', ...newKey, '-subj', `/CN=${name}`, '-days', '30', ...files);
  }

  async function issue(authority: string, name: string, san: string, days: number): Promise<Certificate> {
    const request = ['-keyout', `${name}.key`, '-out', `${name}.csr`];
    await run('req', '-new', ...newKey, '-subj', `/CN=${name}`, ...request);
    await writeFile(path(`${name}.ext`), `subjectAltName=${san}\n`);
    const signer = ['-CA', `${authority}.crt`, '-CAkey', `${authority}.key`, '-CAcreateserial'];
    const files = ['-in', `${name}.csr`, '-out', `${name}.crt`, '-extfile', `${name}.ext`];
    await run('x509', '-req', ...signer, '-days', String(days), ...files);
    const [cert, key] = await Promise.all([
      readFile(path(`${name}.crt`), 'utf8'),
      readFile(path(`${name}.key`), 'utf8'),
    ]);
    return { cert, key };
  }

  await makeAuthority('authority');
  await makeAuthority('stranger');
  return {
    caFile: path('authority.crt'),
    whole: await issue('authority', 'whole', 'IP:127.0.0.1', 30),
    // A lifetime that ended before it began; openssl signs it all the same.
    expired: await issue('authority', 'expired', 'IP:127.0.0.1', -1),
    otherName: await issue('authority', 'other-name', 'DNS:elsewhere.example', 30),
    otherAuthority: await issue('stranger', 'other-authority', 'IP:127.0.0.1', 30),
  };
}
