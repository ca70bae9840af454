/**
 * Peers repeat field sections octet for octet. For a recognised section a decoder gives the same array, so that what
 * was made of it is used again:
 * ```ts
 * const READ = new MadeOf<Section>();
 * const section = READ.get(fields) ?? read(fields);
 * READ.keep(fields, section); // does nothing unless the fields are lasting
 * ```
 * A lasting array is never changed. What is kept goes with its array.
 */

import type { Fields } from './fields.ts';

const LASTING = new WeakSet<Fields>();

export function makeLasting(fields: Fields): void {
  LASTING.add(fields);
}

export function isLasting(fields: Fields): boolean {
  return LASTING.has(fields);
}

export class MadeOf<Made> {
  readonly #made = new WeakMap<Fields, Made>();

  get(fields: Fields): Made | undefined {
    return this.#made.get(fields);
  }

  /**
   * Does nothing unless `fields` are lasting.
   * @param result the array within `made`, which becomes lasting as well
   */
  keep(fields: Fields, made: Made, result?: Fields): void {
    if (!isLasting(fields)) return;
    this.#made.set(fields, made);
    if (result !== undefined) makeLasting(result);
  }
}
