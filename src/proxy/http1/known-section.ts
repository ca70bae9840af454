import { makeLasting } from '../http/lasting-fields.ts';
import type { ControlFields } from './control-fields.ts';
import type { FieldLines } from './field-lines.ts';
import type { HeadLimits } from './head-limits.ts';

/** A field section that has been read. */
export interface ReadSection {
  readonly fields: FieldLines;
  readonly control: ControlFields;
}

/** Larger sections are parsed each time rather than kept for a connection that may stay quiet for long. */
const KNOWN_CHARS = 2048;

/** How many first sections are kept for all connections together. */
const MAX_FIRST_SECTIONS = 16;

/** How many of the latest sections are kept: from a few servers at a time, each with the date of the second. */
const MAX_LATEST_SECTIONS = 4;

interface KnownText {
  /** The field lines and the empty line after them. */
  readonly text: string;
  readonly section: ReadSection;
}

/**
 * Sections that the connections of one direction share. Clients that make a connection per request begin each with the
 * same section; a server's sections differ from second to second rather than between connections.
 */
class SharedSections {
  readonly #first = new Map<string, KnownText>();
  /** A ring. */
  readonly #latest: (KnownText | undefined)[] = new Array(MAX_LATEST_SECTIONS).fill(undefined);
  #oldest = 0;

  latest(text: string): KnownText | undefined {
    for (const known of this.#latest) if (known?.text === text) return known;
    return undefined;
  }

  first(text: string): KnownText | undefined {
    return this.#first.get(text) ?? this.latest(text);
  }

  keepLatest(known: KnownText): void {
    this.#latest[this.#oldest] = known;
    this.#oldest = (this.#oldest + 1) % MAX_LATEST_SECTIONS;
  }

  keepFirst(known: KnownText): void {
    if (this.#first.size >= MAX_FIRST_SECTIONS) {
      const [oldest] = this.#first.keys();
      if (oldest !== undefined) this.#first.delete(oldest);
    }
    this.#first.set(known.text, known);
  }
}

/** One for each direction. */
export class SectionsInCommon {
  /** A section that passed under other limits proves nothing. */
  readonly #byLimits = new WeakMap<HeadLimits, SharedSections>();

  under(limits: HeadLimits): SharedSections {
    let shared = this.#byLimits.get(limits);
    if (shared === undefined) {
      shared = new SharedSections();
      this.#byLimits.set(limits, shared);
    }
    return shared;
  }
}

/**
 * The latest field section in one direction of a connection. The next is usually the same octet for octet, whatever its
 * start line; then it is not read again, and its fields are lasting. A different one may be known from other
 * connections, which then share one copy.
 */
export class KnownSection {
  readonly #shared: SharedSections;
  #last: KnownText | undefined;

  constructor(shared: SharedSections) {
    this.#shared = shared;
  }

  /** @param text the field lines and the empty line after them */
  get(text: string): ReadSection | undefined {
    if (this.#last?.text !== text) {
      if (text.length > KNOWN_CHARS) return undefined;
      const known = this.#last === undefined ? this.#shared.first(text) : this.#shared.latest(text);
      if (known === undefined) return undefined;
      this.#last = known;
    }
    const { section } = this.#last;
    makeLasting(section.fields);
    return section;
  }

  keep(text: string, section: ReadSection): void {
    if (text.length > KNOWN_CHARS) return;
    const known = { text, section };
    this.#shared.keepLatest(known);
    if (this.#last === undefined) this.#shared.keepFirst(known);
    this.#last = known;
  }
}
