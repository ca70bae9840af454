/** The files that a credential reads in its directory, for whoever has to understand them. */

import { join } from 'node:path';
import type { UnusableSecret } from '../../platform/mounted/mounted-secret.ts';

export interface MountedFiles {
  readonly directory: string;
  /** The content of a file that was read with the Secret. */
  content(name: string): string;
  /** @param expected what the file should be, as a noun phrase. Holds nothing of the file itself. */
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

/** Whether a text has the form of a JWS in compact serialization (RFC 7515 §3.1); the provider judges its validity. */
export function isJwt(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
}
