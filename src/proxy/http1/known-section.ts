import { makeLasting } from '../http/lasting-fields.ts';
import type { ControlFields } from './control-fields.ts';
import type { FieldLines } from './field-lines.ts';
import type { HeadLimits } from './head-limits.ts';

/** A field section that has been read. */
export interface ReadSection {
  readonly fields: FieldLines;
  readonly control: ControlFields;
}

/** Larger ones are read each time: they are not kept for a connection that may be quiet for long. */
const KNOWN_CHARS = 2048;

/** How many first sections are known of all connections together. */
const MOST_FIRST = 16;

/**
 * The sections that connections began with lately, in one direction. Clients that make a connection for each request say
 * the same on every one of them.
 */
export class FirstSections {
  /** What other limits let pass says nothing. */
  readonly #byLimits = new WeakMap<HeadLimits, Map<string, ReadSection>>();

  get(limits: HeadLimits, text: string): ReadSection | undefined {
    return this.#byLimits.get(limits)?.get(text);
  }

  keep(limits: HeadLimits, text: string, section: ReadSection): void {
    let sections = this.#byLimits.get(limits);
    if (sections === undefined) {
      sections = new Map();
      this.#byLimits.set(limits, sections);
    }
    if (sections.size >= MOST_FIRST) {
      const [oldest] = sections.keys();
      if (oldest !== undefined) sections.delete(oldest);
    }
    sections.set(text, section);
  }
}

/**
 * The field section that came last in one direction of a connection. The next is the same as a rule, octet for octet,
 * whatever the line before it says; it is not read again then, and its fields are lasting. Of a connection's first
 * section, those that other connections began with are known.
 */
export class KnownSection {
  readonly #first: FirstSections;
  readonly #limits: HeadLimits;
  #text = '';
  #section: ReadSection | undefined;

  constructor(first: FirstSections, limits: HeadLimits) {
    this.#first = first;
    this.#limits = limits;
  }

  /** @param text the field lines and the empty line behind them */
  get(text: string): ReadSection | undefined {
    const section = this.#section ?? this.#firstOf(text);
    if (section === undefined || text !== this.#text) return undefined;
    makeLasting(section.fields);
    return section;
  }

  keep(text: string, section: ReadSection): void {
    if (text.length > KNOWN_CHARS) return;
    if (this.#section === undefined) this.#first.keep(this.#limits, text, section);
    this.#text = text;
    this.#section = section;
  }

  #firstOf(text: string): ReadSection | undefined {
    if (text.length > KNOWN_CHARS) return undefined;
    const section = this.#first.get(this.#limits, text);
    if (section === undefined) return undefined;
    this.#text = text;
    this.#section = section;
    return section;
  }
}
