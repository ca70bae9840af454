/** Places of settings in a file. */

import type { Document, Node, Pair } from 'yaml';
import { redactedLine } from '../platform/log/redacted-text.ts';
import type { Place } from '../platform/problems.ts';

/** In characters; wider lines are cut. */
const FRAME_WIDTH = 100;

const DEEPEST = 50;

interface Range {
  readonly from: number;
  readonly to: number;
}

export class SourceText {
  readonly #file: string;
  readonly #isKnown: (key: string) => boolean;
  readonly #lines: readonly string[];
  readonly #starts: readonly number[];
  #document: Document | undefined;

  /** @param isKnown a key's values are no secrets. */
  constructor(file: string, text: string, isKnown: (key: string) => boolean) {
    this.#file = file;
    this.#isKnown = isKnown;
    this.#lines = text.split('\n');
    let start = 0;
    this.#starts = this.#lines.map((line) => {
      const own = start;
      start += line.length + 1;
      return own;
    });
  }

  /** Allows keys to be found. */
  understoodAs(document: Document): void {
    this.#document = document;
  }

  /** Shows no value. */
  amongUnknown(from: number, to = from + 1): Place {
    return this.#place(from, to, () => false);
  }

  at(from: number, to = from + 1): Place {
    return this.#place(from, to, this.#isKnown);
  }

  #place(from: number, to: number, isKnown: (key: string) => boolean): Place {
    const lines = this.#lines;
    const { index, start: lineStart } = this.#lineAt(from);
    const column = from - lineStart;
    const own = (lines[index] ?? '').replace(/\r$/, '');
    const shown = redactedLine(own, isKnown, keyAbove(lines, index));
    const start = shown.place(column);
    const last = Math.min(column + Math.max(1, to - from), own.length) - 1;
    const length = Math.max(1, shown.place(last) + 1 - start);
    return { file: this.#file, line: index + 1, column: column + 1, frame: cut(shown.text, start, length) };
  }

  #lineAt(offset: number): { readonly index: number; readonly start: number } {
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#starts[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return { index: low, start: this.#starts[low] ?? 0 };
  }

  /**
   * A missing setting is placed at its mapping. Undefined if the document says nothing of it.
   * @param key as `routes[0].upstream`.
   * @param of the wrong part.
   */
  find(key: string, of: 'key' | 'value'): Place | undefined {
    const range =
      this.#document?.contents == null ? undefined : locate(this.#document.contents as Node, key, of);
    return range && this.at(range.from, range.to);
  }
}

/** Judges by indentation. */
function keyAbove(lines: readonly string[], index: number): string | undefined {
  const indentation = (line: string) => /^[\s-]*/.exec(line)?.[0].length ?? 0;
  const own = lines[index] ?? '';
  // An entry may be indented as its list's key.
  const depth = /^\s*-/.test(own) ? (/^\s*/.exec(own)?.[0].length ?? 0) + 1 : indentation(own);
  for (let above = index - 1; above >= 0 && index - above < 1000; above--) {
    const line = lines[above] as string;
    if (line.trim() === '' || indentation(line) >= depth) continue;
    return /^[\s-]*["']?([A-Za-z0-9_.-]+)["']?\s*:/.exec(line)?.[1];
  }
  return undefined;
}

/** Follows the key as far as the document goes. */
function locate(node: Node, key: string, of: 'key' | 'value'): Range | undefined {
  let current: Node = node;
  let found: Range | undefined;
  let rest = key;
  for (let depth = 0; depth < DEEPEST && rest !== ''; depth++) {
    const [index, digits] = /^\[(\d+)\]\.?/.exec(rest) ?? [];
    if (index !== undefined) {
      const item = itemsOf(current)?.[Number(digits)] as Node | undefined;
      if (item === undefined) return found ?? rangeOf(current);
      found = rangeOf(item) ?? found;
      current = item;
      rest = rest.slice(index.length);
      continue;
    }
    const pair = pairFor(current, rest);
    if (pair === undefined) return depth === 0 ? undefined : (firstKey(current) ?? found);
    const name = nameOf(pair);
    rest = rest.slice(name.length).replace(/^\./, '');
    const value = pair.value as Node | null;
    const ofKey = rangeOf(pair.key as Node);
    found = rest === '' && of === 'key' ? ofKey : (leafRange(value) ?? ofKey);
    if (value === null) return found;
    current = value;
  }
  return found;
}

/** A mapping or list is marked only where it begins. */
function leafRange(node: Node | null): Range | undefined {
  const range = node === null ? undefined : rangeOf(node);
  if (node === null || range === undefined || range.from === range.to) return undefined;
  return itemsOf(node) === undefined ? range : (firstKey(node) ?? range);
}

function rangeOf(node: Node | null | undefined): Range | undefined {
  const range = node?.range;
  return range == null ? undefined : { from: range[0], to: range[1] };
}

function firstKey(node: Node): Range | undefined {
  const [first] = itemsOf(node) ?? [];
  return first !== undefined && isPair(first) ? rangeOf(first.key as Node) : undefined;
}

function itemsOf(node: Node): readonly (Node | Pair)[] | undefined {
  const { items } = node as { items?: readonly (Node | Pair)[] };
  return items;
}

function isPair(item: object): item is Pair {
  return 'key' in item && 'value' in item;
}

/** The longest, as names may contain dots. */
function pairFor(node: Node, rest: string): Pair | undefined {
  const pairs = (itemsOf(node) ?? []).filter(isPair);
  return pairs
    .filter((pair) => {
      const name = nameOf(pair);
      return name !== '' && (rest === name || rest.startsWith(`${name}.`) || rest.startsWith(`${name}[`));
    })
    .sort((a, b) => nameOf(b).length - nameOf(a).length)[0];
}

function nameOf({ key }: Pair): string {
  return String((key as { value?: unknown } | null)?.value ?? '');
}

function cut(text: string, from: number, length: number): Place['frame'] {
  if (text.length <= FRAME_WIDTH) return { text, from, length };
  const start = Math.max(0, Math.min(from - 30, text.length - FRAME_WIDTH));
  const before = start > 0 ? '…' : '';
  const after = start + FRAME_WIDTH < text.length ? '…' : '';
  const shownLength = Math.min(length, start + FRAME_WIDTH - from);
  return {
    text: `${before}${text.slice(start, start + FRAME_WIDTH)}${after}`,
    from: from - start + before.length,
    length: Math.max(1, shownLength),
  };
}
