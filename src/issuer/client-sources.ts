import { constants } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import { didYouMean } from '../config/suggestion.ts';
import { ALIASES, expectedYaml } from '../config/yaml.ts';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import { type Logger, withoutRepeatLimit } from '../platform/log/logger.ts';
import { type DirectoryWatchOptions, watchDirectory } from '../platform/mounted/directory-watch.ts';
import { type MountedSecret, readMountedSecret } from '../platform/mounted/mounted-secret.ts';
import { ConfigurationError, describeProblem, type Problem } from '../platform/problems.ts';
import {
  type Client,
  type ClientField,
  type ClientSet,
  type ClientStore,
  createClientSet,
  createClientStore,
  defineClient,
  sha256,
} from './clients.ts';
import type { IssuerMetrics } from './metrics.ts';

/** The most in a ConfigMap or Secret. */
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
  'dpopBoundAccessTokens',
] as const;

/** @param key for messages. */
export async function readClientsFile(path: string, key: string): Promise<ClientsResult> {
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

/** @throws {ConfigurationError} with every problem and its place; never with a secret. */
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
    // Messages may quote a secret.
    const document = parseDocument(text, { prettyErrors: false, lineCounter: lines, logLevel: 'silent' });
    for (const { code, pos } of [...document.errors, ...document.warnings]) {
      const { line, col } = lines.linePos(pos[0]);
      problems.push({ key: `line ${line}, column ${col}`, expected: expectedYaml('valid YAML', code) });
    }
    return problems.length > 0 ? undefined : document.toJS();
  } catch {
    // Aliases that multiply or name no anchor, or deep nesting.
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
  const truth = (field: ClientField): string | undefined => {
    const value = entry[field];
    if (value === undefined || typeof value === 'boolean') return value?.toString();
    problems.push({ key: keyOf(field), expected: 'true or false' });
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
    dpopBoundAccessTokens: truth('dpopBoundAccessTokens'),
  };
  // A field of the wrong type would be reported as missing, too.
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
      // A value may have got into it.
      key: `${prefix}${name.replace(/[^A-Za-z_-].*/s, '…')}`,
      code: 'unknown_key',
      expected: `no such key; there is ${known.join(', ')}${didYouMean(name, known)}`,
    });
  }
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

async function readText(path: string): Promise<string | { readonly expected: string }> {
  try {
    // Non-blocking, so that a named pipe is refused.
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

// Mounted Secrets: a subdirectory per client.

const FILE_OF: Readonly<Record<ClientField, string>> = {
  clientId: 'client_id',
  clientSecret: 'client_secret',
  secretHash: 'secret_hash',
  secondClientSecret: 'second_client_secret',
  secondSecretHash: 'second_secret_hash',
  scopes: 'scope',
  audience: 'audience',
  tokenLifetime: 'token_lifetime',
  dpopBoundAccessTokens: 'dpop_bound_access_tokens',
};

/** The directory may change meanwhile. */
const TRIES = 3;

/** @param key for messages. */
export async function readClientsDirectory(root: string, key: string): Promise<ClientsResult> {
  for (let tries = 1; ; tries += 1) {
    const names = await namesIn(root);
    const reading = await readOnce(root, key);
    const failed = 'problems' in reading.outcome;
    if (!failed || tries === TRIES || names === (await namesIn(root))) return reading;
  }
}

async function namesIn(root: string): Promise<string> {
  return readdir(root).then(
    (names) => names.sort().join('\0'),
    () => '',
  );
}

async function readOnce(root: string, key: string): Promise<ClientsResult> {
  const directories = [root];
  const problems: Problem[] = [];
  const clients: Client[] = [];
  const places: string[] = [];
  let content = '';
  try {
    for (const name of (await readdir(root)).sort()) {
      // The kubelet's `..data` and other dot files.
      if (name.startsWith('.')) continue;
      const directory = join(root, name);
      directories.push(directory);
      const reading = await readClient(directory, problems);
      if (reading === undefined) continue;
      content += reading.content;
      if (reading.client === undefined) continue;
      clients.push(reading.client);
      places.push(join(directory, FILE_OF.clientId));
    }
  } catch (error) {
    const cause = systemCodeOf(error) ?? messageOf(error);
    problems.push({ key, value: root, expected: `a readable directory (${cause})` });
  }
  const digest = sha256(JSON.stringify([content, problems])).toString('base64');
  if (problems.length > 0) return { outcome: { problems }, digest, directories };
  try {
    const set = createClientSet(clients, (index) => places[index] ?? root);
    return { outcome: { clients: set }, digest, directories };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { outcome: { problems: error.problems }, digest, directories };
  }
}

async function readClient(
  directory: string,
  problems: Problem[],
): Promise<{ readonly client: Client | undefined; readonly content: string } | undefined> {
  if (!(await stat(directory)).isDirectory()) {
    problems.push({ key: directory, expected: 'a directory with the files of one client' });
    return undefined;
  }
  const secret = await readFiles(directory);
  if (secret.state !== 'loaded') {
    problems.push({ key: directory, expected: `the files of a client, but ${secret.detail}` });
    return undefined;
  }
  const text = (field: ClientField): string | undefined => secret.values[FILE_OF[field]];
  const client = defineClient(
    {
      clientId: text('clientId'),
      clientSecret: text('clientSecret'),
      secretHash: text('secretHash'),
      secondClientSecret: text('secondClientSecret'),
      secondSecretHash: text('secondSecretHash'),
      scopes: words(text('scopes')),
      audience: words(text('audience')),
      tokenLifetime: text('tokenLifetime'),
      dpopBoundAccessTokens: text('dpopBoundAccessTokens'),
    },
    (field) => join(directory, FILE_OF[field]),
    problems,
  );
  return { client, content: JSON.stringify([directory, secret.values]) };
}

/** All files are of one version. */
async function readFiles(directory: string): Promise<MountedSecret> {
  const version = await currentVersion(directory);
  const present = await readdir(version).catch((): string[] => []);
  const names = Object.values(FILE_OF).filter((name) => present.includes(name) || name === FILE_OF.clientId);
  const secret = await readMountedSecret(version, names);
  // The kubelet removes a version once it has swapped in the next.
  return (await currentVersion(directory)) === version ? secret : await readFiles(directory);
}

/** The directory may have its own `..data`, or be a link through that of its volume. */
async function currentVersion(directory: string): Promise<string> {
  const place = await realpath(directory);
  return await realpath(join(place, '..data')).catch(() => place);
}

function words(text: string | undefined): readonly string[] | undefined {
  return text?.split(/\s+/).filter((word) => word !== '');
}

interface ClientsResult {
  readonly outcome: { readonly clients: ClientSet } | { readonly problems: readonly Problem[] };
  /** Reveals nothing of the content. */
  readonly digest: string;
  /** To be watched. */
  readonly directories: readonly string[];
}

/** Never rejects. */
type ReadClients = () => Promise<ClientsResult>;

export interface LiveClients {
  readonly store: ClientStore;
  close(): void;
}

interface LiveClientsOptions extends DirectoryWatchOptions {
  readonly metrics: IssuerMetrics;
  readonly log: Logger;
}

/**
 * Replaces all clients at once. If anything is wrong, logs every problem and keeps the last good ones.
 * @throws {ConfigurationError} if the source is unusable from the start.
 */
export async function watchClients(read: ReadClients, options: LiveClientsOptions): Promise<LiveClients> {
  const { metrics, log } = options;
  const first = await read();
  if ('problems' in first.outcome) throw new ConfigurationError(first.outcome.problems);
  const store = createClientStore(first.outcome.clients);
  announce(first.outcome.clients.size);

  let seen = first.digest;
  const watches = new Map<string, () => void>();
  let reading = false;
  let lookAgain = false;
  let closed = false;

  async function look(): Promise<void> {
    lookAgain = true;
    if (reading) return;
    reading = true;
    while (lookAgain && !closed) {
      lookAgain = false;
      apply(await read());
    }
    reading = false;
  }

  function apply(next: ClientsResult): void {
    if (closed) return;
    watchOnly(next.directories);
    if (next.digest === seen) return;
    seen = next.digest;
    if ('problems' in next.outcome) {
      metrics.reloaded('clients', 'failure');
      const problems = next.outcome.problems.map(describeProblem);
      withoutRepeatLimit(log).error(
        { problems, clients: store.current().size },
        'clients not reloaded, the last good ones stay',
      );
      return;
    }
    store.replace(next.outcome.clients);
    metrics.reloaded('clients', 'success');
    announce(next.outcome.clients.size);
  }

  function announce(size: number): void {
    metrics.clients(size);
    if (size === 0) log.warn({ clients: 0 }, 'no client is registered: every token request will be refused');
    else log.info({ clients: size }, 'clients loaded');
  }

  function watchOnly(directories: readonly string[]): void {
    for (const [directory, unwatch] of watches) {
      if (directories.includes(directory)) continue;
      unwatch();
      watches.delete(directory);
    }
    for (const directory of directories) {
      if (watches.has(directory)) continue;
      watches.set(
        directory,
        watchDirectory(directory, options, () => void look()),
      );
      lookAgain = true;
    }
  }

  watchOnly(first.directories);
  await look();
  return {
    store,
    close() {
      closed = true;
      for (const unwatch of watches.values()) unwatch();
      watches.clear();
    },
  };
}
