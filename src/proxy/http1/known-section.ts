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

/** And how many of those that came last: from a few servers at a time, each with the date of the second. */
const MOST_LATEST = 4;

interface KnownText {
  /** The field lines and the empty line behind them. */
  readonly text: string;
  readonly section: ReadSection;
}

/**
 * What connections of one direction know of each other. Clients that make a connection for each request begin every one with
 * the same section; and what a server says differs from second to second rather than from connection to connection.
 */
export class SharedSections {
  readonly #first = new Map<string, KnownText>();
  /** A ring. */
  readonly #latest: (KnownText | undefined)[] = new Array(MOST_LATEST).fill(undefined);
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
    this.#oldest = (this.#oldest + 1) % MOST_LATEST;
  }

  keepFirst(known: KnownText): void {
    if (this.#first.size >= MOST_FIRST) {
      const [oldest] = this.#first.keys();
      if (oldest !== undefined) this.#first.delete(oldest);
    }
    this.#first.set(known.text, known);
  }
}

/** One for each direction. */
export class SectionsInCommon {
  /** What other limits let pass says nothing. */
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
 * The field section that came last in one direction of a connection. The next is the same as a rule, octet for octet,
 * whatever the line before it says; it is not read again then, and its fields are lasting. Where it is another, it may be
 * one that other connections met before: then all of them hold one copy.
 */
export class KnownSection {
  readonly #shared: SharedSections;
  #last: KnownText | undefined;

  constructor(shared: SharedSections) {
    this.#shared = shared;
  }

  /** @param text the field lines and the empty line behind them */
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
