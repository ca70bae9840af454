/** The root of the sidecar's authority, as left for apps, and whether a certificate is issued by it. */

import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { MAX_PEM_BYTES, readBoundedFile } from '../platform/files/bounded-file.ts';

export function sidecarRootIn(directory: string): string {
  return join(directory, 'ca.crt');
}

/** @throws if there is none that can be read. */
export async function readSidecarRoot(directory: string): Promise<X509Certificate> {
  return new X509Certificate(await readBoundedFile(sidecarRootIn(directory), MAX_PEM_BYTES));
}

/**
 * Whether the sidecar itself has shown this chain, in place of the host. Judged by signatures: anybody can use its
 * name.
 * @param chain the server's own certificate first.
 */
export async function isShownBySidecar(
  chain: readonly X509Certificate[],
  directory: string | undefined,
): Promise<boolean> {
  if (directory === undefined || chain.length === 0) return false;
  const root = await readSidecarRoot(directory).catch(() => undefined);
  if (root === undefined) return false;
  const issuers = [...chain.slice(1).filter(({ raw }) => !raw.equals(root.raw)), root];
  return issuers.every((issuer, index) => chain[index]?.verify(issuer.publicKey) === true);
}
