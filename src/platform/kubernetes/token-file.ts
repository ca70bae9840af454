/** A service account's token, which the kubelet renews in its file. */

import { readFile } from 'node:fs/promises';
import { type Clock, elapsedMs, type Instant } from '../time/clock.ts';

const READ_EVERY_MS = 60_000;

/**
 * Read again after a minute by either clock: the wall clock may be set back by hours, and the monotonic one stands
 * still while the machine is suspended.
 */
export class TokenFile {
  readonly #path: string;
  readonly #clock: Clock;
  #read: { readonly token: string; readonly at: Instant } | undefined;
  #refusals = 0;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /** @throws the system's error if the file cannot be read. */
  async current(): Promise<string> {
    const at = this.#clock.now();
    const read = this.#read;
    if (read !== undefined && elapsedMs(read.at, at) < READ_EVERY_MS) return read.token;
    const refusals = this.#refusals;
    const token = await readFile(this.#path, 'utf8');
    // A token read before a refusal may be the refused one.
    if (refusals === this.#refusals) this.#read = { token, at };
    return token;
  }

  /** The server has refused it: the next request reads the file. */
  refused(): void {
    this.#refusals += 1;
    this.#read = undefined;
  }
}
