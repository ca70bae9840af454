/**
 * Clients and servers say the same again and again, octet for octet. A decoder that knows a field section again gives the
 * same array as before; what was made of it then need not be made once more:
 *
 * ```ts
 * const READ = new MadeOf<Section>();
 * const section = READ.get(fields) ?? read(fields);
 * READ.keep(fields, section); // does nothing unless the fields are lasting
 * ```
 *
 * Nobody changes an array that is lasting. What is kept goes with its array.
 */

import type { Fields } from './fields.ts';

const LASTING = new WeakSet<Fields>();

/** Says that the array is never changed, and likely to be met again. */
export function makeLasting(fields: Fields): void {
  LASTING.add(fields);
}

export function isLasting(fields: Fields): boolean {
  return LASTING.has(fields);
}

/** What was made of lasting fields, by one function of them. */
export class MadeOf<Made> {
  readonly #made = new WeakMap<Fields, Made>();

  get(fields: Fields): Made | undefined {
    return this.#made.get(fields);
  }

  /**
   * Keeps what was made of fields that are lasting.
   * @param result the array in what was made, which is as lasting as they are
   */
  keep(fields: Fields, made: Made, result?: Fields): void {
    if (!isLasting(fields)) return;
    this.#made.set(fields, made);
    if (result !== undefined) makeLasting(result);
  }
}
