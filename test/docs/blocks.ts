/** Every fenced block of every page, and what is to be made of it. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { fileSchema } from '../../src/config/file-schema.ts';
import { exemptionOf } from './exemptions.ts';

export const ROOT = join(import.meta.dirname, '../..');

/** What a block is, which decides what a test does with it. */
export type Kind =
  /** A configuration file, or top-level settings of one. */
  | 'configuration'
  /** Settings of one credential. */
  | 'credential'
  /** Entries of `routes`. */
  | 'routes'
  /** Whole Kubernetes objects. */
  | 'manifest'
  /** A part of a pod's spec. */
  | 'pod'
  /** Annotations of a pod. */
  | 'annotations'
  /** Values of this chart as a release has them. */
  | 'release'
  /** Values of a chart that has this one as a library. */
  | 'values'
  /** A template of such a chart. */
  | 'template'
  /** Dependencies of such a chart. */
  | 'dependencies'
  /** Clients of the issuer. */
  | 'clients'
  /** Settings of Prometheus. */
  | 'prometheus'
  | 'promql'
  | 'json'
  | 'shell'
  /** Listed in exemptions.ts, with the reason. */
  | 'exempt';

export interface Block {
  readonly file: string;
  /** Of the fence; from 1. */
  readonly line: number;
  /** The words behind the fence. */
  readonly info: readonly string[];
  readonly text: string;
}

/** Pages whose blocks have tests of their own, or are somebody else's. */
const OTHERS = /^test\/config\/mistakes\//;

function pages(): string[] {
  const listed = execFileSync('git', ['ls-files', '*.md'], { cwd: ROOT, encoding: 'utf8' });
  return listed.split('\n').filter((file) => file !== '' && !OTHERS.test(file));
}

function blocksOf(file: string): Block[] {
  const lines = readFileSync(join(ROOT, file), 'utf8').split('\n');
  const blocks: Block[] = [];
  let open: { line: number; indent: string; info: string[]; text: string[] } | undefined;
  lines.forEach((line, index) => {
    const [, indent = '', info = ''] = /^( *)```(.*)$/.exec(line) ?? [];
    const isFence = /^ *```/.test(line);
    if (open === undefined) {
      if (isFence) open = { line: index + 1, indent, info: info.split(' ').filter(Boolean), text: [] };
    } else if (isFence) {
      const { line: at, info: words, text } = open;
      blocks.push({ file, line: at, info: words, text: `${text.join('\n')}\n` });
      open = undefined;
    } else open.text.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
  });
  if (open !== undefined) throw new Error(`${file}:${open.line}: a block without an end`);
  return blocks;
}

export const PAGES: readonly string[] = pages();

export const BLOCKS: readonly Block[] = PAGES.flatMap(blocksOf);

export const nameOf = ({ file, line }: Block): string => `${file}:${line}`;

/** Those of a kind, each with a name for its test. */
export function blocksOfKind(kind: Kind): [string, Block][] {
  return BLOCKS.filter((block) => kindOf(block) === kind).map((block) => [nameOf(block), block]);
}

const BY_LANGUAGE: Readonly<Record<string, Kind>> = { sh: 'shell', json: 'json', promql: 'promql' };

/** Kinds that a block says itself, because its text alone does not: ```` ```yaml routes ````. */
const SAID: readonly Kind[] = ['credential', 'routes', 'values', 'release', 'template', 'dependencies'];

const POD_KEYS = ['initContainers', 'containers', 'volumes', 'hostAliases', 'securityContext'];

/** @returns undefined where nobody knows what it is: then the page has to say. */
export function kindOf(block: Block): Kind | undefined {
  if (exemptionOf(block) !== undefined) return 'exempt';
  const [language = '', said] = block.info;
  if (said !== undefined) return SAID.find((kind) => kind === said);
  return BY_LANGUAGE[language] ?? (language === 'yaml' ? kindOfYaml(block.text) : undefined);
}

function kindOfYaml(text: string): Kind | undefined {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) return undefined;
  const values = documents.map((document) => document.toJS() as Record<string, unknown>);
  const keys = new Set(values.flatMap((value) => Object.keys(value ?? {})));
  const every = (known: readonly string[]): boolean => [...keys].every((key) => known.includes(key));
  if (keys.has('apiVersion') && keys.has('kind')) return 'manifest';
  if (every(['metadata', 'annotations'])) return 'annotations';
  if (every(POD_KEYS)) return 'pod';
  if (every(['clients'])) return 'clients';
  if (every(['scrape_configs'])) return 'prometheus';
  return every(Object.keys(fileSchema.entries)) ? 'configuration' : undefined;
}
