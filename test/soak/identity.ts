import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificateAuthority } from '../support/certificate-authority.ts';

/** The API's certificate for 127.0.0.1, and where the sidecar finds whom to trust. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
  readonly caFile: string;
  remove(): Promise<void>;
}

export async function createIdentity(): Promise<Identity> {
  const authority = createCertificateAuthority('token-sidecar soak');
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-soak-tls-'));
  const caFile = join(directory, 'ca.crt');
  await writeFile(caFile, authority.cert);
  return {
    ...authority.issue('protected API', '127.0.0.1'),
    caFile,
    remove: () => rm(directory, { recursive: true }),
  };
}
