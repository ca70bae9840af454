import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type Node } from 'yaml';
import { type JsonPatch, segmentsOf } from '../pod/json-patch.ts';

/**
 * Applies a patch below `path` of a YAML document, whose comments and order stay.
 * @returns what prevents it, with nothing changed, or undefined.
 */
export function applyToDocument(
  document: Document,
  path: readonly (string | number)[],
  patch: JsonPatch,
): string | undefined {
  const additions = patch.map(({ path: at, value }) => ({ target: [...path, ...segmentsOf(at)], value }));
  const shared = additions
    .map(({ target }) => sharedNode(document, target))
    .find((found) => found !== undefined);
  if (shared !== undefined) return `${shared} is shared by an anchor and an alias, or merged: write it out`;
  for (const { target, value } of additions) {
    const parent = document.getIn(target.slice(0, -1));
    const last = target.at(-1) as string;
    // A separate node for each place, so that a value that occurs twice does not become an alias.
    const node = document.createNode(structuredClone(value), { aliasDuplicateObjects: false });
    if (isSeq(parent)) parent.items.splice(last === '-' ? parent.items.length : Number(last), 0, node);
    else document.setIn(target, node);
  }
  return undefined;
}

/** The first node on the way that also stands somewhere else, where a change would show too. */
function sharedNode(document: Document, target: readonly (string | number)[]): string | undefined {
  for (let length = 1; length < target.length; length++) {
    const path = target.slice(0, length);
    const node = document.getIn(path, true);
    if (node === undefined && isMerged(document, path)) return path.join('.');
    if (!isNode(node)) return undefined;
    if (isAlias(node) || (node as Node & { anchor?: string }).anchor !== undefined) return path.join('.');
  }
  return undefined;
}

function isMerged(document: Document, path: readonly (string | number)[]): boolean {
  const parent = document.getIn(path.slice(0, -1));
  return isMap(parent) && parent.items.some(({ key }) => isMergeKey(key));
}

/** A `<<` that merges is a symbol of the library's own; a quoted one is text. */
function isMergeKey(key: unknown): boolean {
  return isScalar(key) && typeof key.value === 'symbol';
}
