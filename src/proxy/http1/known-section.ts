import { makeLasting } from '../http/lasting-fields.ts';
import type { ControlFields } from './control-fields.ts';
import type { FieldLines } from './field-lines.ts';

/** A field section that has been read. */
export interface ReadSection {
  readonly fields: FieldLines;
  readonly control: ControlFields;
}

/** Larger ones are read each time: they are not kept for a connection that may be quiet for long. */
const KNOWN_CHARS = 2048;

/**
 * The field section that came last in one direction of a connection. The next is the same as a rule, octet for octet,
 * whatever the line before it says; it is not read again then, and its fields are lasting.
 */
export class KnownSection {
  #text = '';
  #section: ReadSection | undefined;

  /** @param text the field lines and the empty line behind them */
  get(text: string): ReadSection | undefined {
    const section = this.#section;
    if (section === undefined || text !== this.#text) return undefined;
    makeLasting(section.fields);
    return section;
  }

  keep(text: string, section: ReadSection): void {
    if (text.length > KNOWN_CHARS) return;
    this.#text = text;
    this.#section = section;
  }
}
