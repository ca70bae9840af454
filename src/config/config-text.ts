import { readBoundedFile } from '../platform/files/bounded-file.ts';

/** A ConfigMap holds at most 1 MiB. */
const MAX_FILE_BYTES = 1024 * 1024;

/**
 * The text of a configuration file.
 * @throws {Error} with a sentence, or the system's, if it cannot be read or is larger than a ConfigMap can be.
 */
export function readConfigText(path: string): Promise<string> {
  return readBoundedFile(path, MAX_FILE_BYTES);
}
