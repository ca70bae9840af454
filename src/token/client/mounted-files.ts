/** The files that a credential reads in its directory, for whoever has to understand them. */

import { join } from 'node:path';
import type { UnusableSecret } from '../../credentials/mounted-secret.ts';

export interface MountedFiles {
  readonly directory: string;
  /** A file that is among those the Secret was read for. */
  content(name: string): string;
  /** @param expected what the file should be, as a noun phrase. Nothing of the file itself is in it. */
  malformed(name: string, expected: string): UnusableSecret;
}

export function mountedFiles(directory: string, files: Readonly<Record<string, string>>): MountedFiles {
  return {
    directory,
    content: (name) => files[name] ?? '',
    malformed: (name, expected) => ({
      state: 'malformed',
      detail: `${join(directory, name)} is not ${expected}`,
    }),
  };
}

/** The form of a JWS in compact serialization (RFC 7515 §3.1); whether it is valid is the provider's to say. */
export function isJwt(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
}
