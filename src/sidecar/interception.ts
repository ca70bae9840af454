/** Loaded only if TLS is intercepted: nothing else makes certificates. */

import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { getCACertificates, rootCertificates } from 'node:tls';
import { systemCodeOf } from '../platform/errors.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import { trustStoreOf } from '../platform/x509/trust-store.ts';
import { createAuthority, LeafCertificates } from '../proxy/tls/interception-ca.ts';

interface InterceptionOptions {
  readonly directory: string;
  /** Names, or `*.suffix`, that the authority may vouch for. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

/** @throws {Error} the system's, if the directory cannot be written. */
export async function openInterception({
  directory,
  names,
  clock,
  log,
}: InterceptionOptions): Promise<LeafCertificates> {
  const authority = createAuthority({ names, nowMs: clock.now().wallMs });
  // Without the system's roots: an image has none. NODE_EXTRA_CA_CERTS names the operator's.
  const publicRoots = [...rootCertificates, ...getCACertificates('extra')];
  const replaced = await writeTrustFiles(directory, authority.root, publicRoots);
  log.info({ directory, names }, 'TLS is intercepted for these names');
  if (replaced) {
    log.warn(
      { directory },
      'an earlier start of the sidecar has left certificates there: apps that began before this one do not trust it, and have to be started again',
    );
  }
  return new LeafCertificates(authority, clock);
}

/** For apps that add to what they trust, that replace it, and the JVM. */
const TRUST_FILES = { root: 'ca.crt', bundle: 'bundle.pem', trustStore: 'truststore.p12' } as const;

/** Public, and apps run as any user. */
const MODE = 0o644;
const DIRECTORY_MODE = 0o755;

/**
 * Replaces each file as a whole.
 * @param root PEM of the sidecar's own authority.
 * @param publicRoots PEM of the other trusted roots.
 * @returns whether an earlier start had left another root: apps that began under it do not trust this one.
 * @throws {Error} the system's, where they cannot be written.
 */
export async function writeTrustFiles(
  directory: string,
  root: string,
  publicRoots: readonly string[],
): Promise<boolean> {
  await makeForAll(resolve(directory));
  const before = await existing(join(directory, TRUST_FILES.root));
  const all = [...publicRoots, root].map((pem) => (pem.endsWith('\n') ? pem : `${pem}\n`));
  await Promise.all([
    replace(join(directory, TRUST_FILES.bundle), all.join('')),
    replace(join(directory, TRUST_FILES.trustStore), trustStoreOf(all)),
  ]);
  // Written last: whoever finds it finds the others.
  await replace(join(directory, TRUST_FILES.root), root);
  return before !== undefined && before !== root;
}

/** Parents are opened to everyone, too. */
async function makeForAll(directory: string): Promise<void> {
  const first = await mkdir(directory, { recursive: true });
  if (first === undefined) return;
  for (let made = directory; made.length >= first.length; made = dirname(made)) {
    await chmod(made, DIRECTORY_MODE);
  }
}

async function existing(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

async function replace(path: string, content: string | Buffer): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(temporary, content, { mode: MODE, flag: 'wx' });
    // The umask may have restricted it.
    await chmod(temporary, MODE);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
