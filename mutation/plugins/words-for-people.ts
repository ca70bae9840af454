/**
 * Leaves out what is written for people alone. A test that repeats a sentence word for word fails when the sentence is
 * bettered and finds no fault; that no text holds a secret is tested elsewhere, on whatever is written.
 */

import { LOG_LEVELS as LEVELS } from '../../src/platform/log/logger.ts';

interface Node {
  readonly type: string;
  readonly name?: string;
  readonly value?: unknown;
  readonly quasis?: readonly { readonly value: { readonly raw: string } }[];
  readonly key?: Node;
  readonly callee?: Node;
  readonly object?: Node;
  readonly property?: Node;
}

interface NodePath {
  readonly node: Node;
  readonly parent: Node | undefined;
  /** In which list of the parent the node stands. */
  readonly listKey?: string;
}

const LOG_LEVELS = new Set<string>(LEVELS.filter((level) => level !== 'silent'));

/** Properties whose text is for people: of a metric, of a flag, of a check of the configuration. */
const DESCRIPTIONS = new Set(['help', 'description', 'title']);

/** Three words in a row: what programs read (codes, field names, status lines) has none. */
const SENTENCE = /[a-z]+ [a-z]+ [a-z]+/i;

export function reasonToLeaveOut({ node, parent, listKey }: NodePath): string | undefined {
  if (parent === undefined) return undefined;
  if (listKey === 'arguments' && isLogCall(parent)) return 'what a log line says';
  const text = textOf(node);
  if (text === undefined) return undefined;
  if (SENTENCE.test(text)) return 'a sentence';
  if (parent.type === 'ObjectProperty' && DESCRIPTIONS.has(parent.key?.name ?? '')) return 'a description';
  if (listKey === 'arguments' && isErrorConstruction(parent) && text.includes(' '))
    return 'the text of an error';
  return undefined;
}

function textOf({ type, value, quasis }: Node): string | undefined {
  if (type === 'StringLiteral') return String(value);
  // What stands in the holes is no part of the sentence.
  return type === 'TemplateLiteral' ? (quasis ?? []).map(({ value: { raw } }) => raw).join('…') : undefined;
}

function isLogCall({ type, callee }: Node): boolean {
  if (type !== 'CallExpression' || callee?.type !== 'MemberExpression') return false;
  const logger = callee.object?.property?.name ?? callee.object?.name;
  return logger === 'log' && LOG_LEVELS.has(callee.property?.name ?? '');
}

function isErrorConstruction({ type, callee }: Node): boolean {
  return type === 'NewExpression' && /Error$/.test(callee?.name ?? '');
}

export const strykerPlugins = [
  { kind: 'Ignore', name: 'words-for-people', value: { shouldIgnore: reasonToLeaveOut } },
];
