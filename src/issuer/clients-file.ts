/** The registered clients as a YAML (or JSON) file. */

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import { didYouMean } from '../config/suggestion.ts';
import { ALIASES, expectedYaml } from '../config/yaml.ts';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { type Client, type ClientField, defineClient, sha256 } from './client.ts';
import { type ClientSet, createClientSet } from './client-store.ts';
import type { ClientsReading } from './clients-reading.ts';

/** The most that a ConfigMap or a Secret can hold. */
const MAX_FILE_BYTES = 1024 * 1024;

const FIELDS = [
  'clientId',
  'clientSecret',
  'secretHash',
  'secondClientSecret',
  'secondSecretHash',
  'scopes',
  'audience',
  'tokenLifetime',
] as const;

/** @param key names the file in messages: the flag or variable that gave it. */
export async function readClientsFile(path: string, key: string): Promise<ClientsReading> {
  const directories = [dirname(path)];
  const text = await readText(path);
  if (typeof text !== 'string') {
    return { outcome: { problems: [{ key, value: path, ...text }] }, digest: text.expected, directories };
  }
  const digest = sha256(text).toString('base64');
  try {
    return { outcome: { clients: parseClients(text) }, digest, directories };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const problems = error.problems.map((problem) => ({ ...problem, key: `${path}: ${problem.key}` }));
    return { outcome: { problems }, digest, directories };
  }
}

/**
 * The clients in a file's text.
 * @throws {ConfigurationError} with every problem and its place in the file; never with a secret.
 */
export function parseClients(text: string): ClientSet {
  const problems: Problem[] = [];
  const root = parseYaml(text, problems);
  const list = problems.length > 0 ? [] : readRoot(root, problems);
  const clients = list.flatMap((entry, index) => readEntry(entry, `clients[${index}]`, problems) ?? []);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return createClientSet(clients);
}

function parseYaml(text: string, problems: Problem[]): unknown {
  const lines = new LineCounter();
  try {
    // Pretty errors quote the line, which may hold a secret; so may their messages. Code and place are enough.
    const document = parseDocument(text, { prettyErrors: false, lineCounter: lines, logLevel: 'silent' });
    for (const { code, pos } of [...document.errors, ...document.warnings]) {
      const { line, col } = lines.linePos(pos[0]);
      problems.push({ key: `line ${line}, column ${col}`, expected: expectedYaml('valid YAML', code) });
    }
    return problems.length > 0 ? undefined : document.toJS();
  } catch {
    // Aliases that multiply or name no anchor, or nesting too deep to follow.
    problems.push({ key: 'clients', expected: `YAML of reasonable depth, with ${ALIASES}` });
    return undefined;
  }
}

function readRoot(root: unknown, problems: Problem[]): readonly unknown[] {
  if (!isMapping(root)) {
    problems.push({ key: 'clients', expected: 'a mapping with a list of clients' });
    return [];
  }
  refuseUnknownKeys(root, ['clients'], '', problems);
  const list = root['clients'];
  if (Array.isArray(list)) return list;
  problems.push({ key: 'clients', expected: 'a list of clients' });
  return [];
}

function readEntry(entry: unknown, key: string, problems: Problem[]): Client | undefined {
  if (!isMapping(entry)) {
    problems.push({ key, expected: `a mapping of ${FIELDS.join(', ')}` });
    return undefined;
  }
  const before = problems.length;
  refuseUnknownKeys(entry, FIELDS, `${key}.`, problems);
  const keyOf = (field: ClientField): string => `${key}.${field}`;
  const text = (field: ClientField): string | undefined => {
    const value = entry[field];
    if (value === undefined || typeof value === 'string') return value;
    problems.push({ key: keyOf(field), expected: 'a string; quote what looks like something else' });
    return undefined;
  };
  const texts = (field: ClientField): readonly string[] | undefined => {
    const value = entry[field];
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
    problems.push({ key: keyOf(field), expected: 'a list of strings' });
    return undefined;
  };
  const definition = {
    clientId: text('clientId'),
    clientSecret: text('clientSecret'),
    secretHash: text('secretHash'),
    secondClientSecret: text('secondClientSecret'),
    secondSecretHash: text('secondSecretHash'),
    scopes: texts('scopes'),
    audience: texts('audience'),
    tokenLifetime: text('tokenLifetime'),
  };
  // A field of the wrong type would be reported as missing too.
  return problems.length > before ? undefined : defineClient(definition, keyOf, problems);
}

function refuseUnknownKeys(
  mapping: Readonly<Record<string, unknown>>,
  known: readonly string[],
  prefix: string,
  problems: Problem[],
): void {
  for (const name of Object.keys(mapping)) {
    if (known.includes(name)) continue;
    problems.push({
      key: `${prefix}${name}`,
      expected: `no such key; there is ${known.join(', ')}${didYouMean(name, known)}`,
    });
  }
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function readText(path: string): Promise<string | { readonly expected: string }> {
  try {
    // Non-blocking, so that a named pipe is refused rather than waited for.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const status = await file.stat();
      if (!status.isFile()) return { expected: 'a regular file' };
      if (status.size > MAX_FILE_BYTES) return { expected: `a file of at most ${MAX_FILE_BYTES} bytes` };
      return new TextDecoder('utf-8', { fatal: true }).decode(await file.readFile());
    } finally {
      await file.close();
    }
  } catch (error) {
    return { expected: `a readable file of UTF-8 text (${systemCodeOf(error) ?? messageOf(error)})` };
  }
}
