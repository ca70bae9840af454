/** What interception needs before the listener opens. Loaded only if TLS is intercepted: nothing else makes certificates. */

import { getCACertificates, rootCertificates } from 'node:tls';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import { createAuthority } from '../proxy/tls/authority.ts';
import { LeafContexts } from '../proxy/tls/leaf-contexts.ts';
import { writeTrustFiles } from '../proxy/tls/trust-files.ts';

interface InterceptionOptions {
  readonly directory: string;
  /** Names, or `*.suffix`, that the authority may vouch for. */
  readonly names: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Makes the authority of this start, and leaves the files that apps have to trust in the directory.
 * @throws {Error} the system's, if the directory cannot be written.
 */
export async function openInterception({
  directory,
  names,
  clock,
  log,
}: InterceptionOptions): Promise<LeafContexts> {
  const authority = createAuthority({ names, nowMs: clock.now().wallMs });
  // Without the system's roots: an image has none, and NODE_EXTRA_CA_CERTS names those that the operator adds.
  const publicRoots = [...rootCertificates, ...getCACertificates('extra')];
  const replaced = await writeTrustFiles(directory, authority.root, publicRoots);
  log.info({ directory, names }, 'TLS is intercepted for these names');
  if (replaced) {
    log.warn(
      { directory },
      'an earlier start of the sidecar has left certificates there: apps that began before this one do not trust it, and have to be started again',
    );
  }
  return new LeafContexts(authority, clock);
}
