/** Who holds an address that cannot be listened on. Loaded only after a failure. */

import { readdir, readFile, readlink } from 'node:fs/promises';
import { createServer, isIP } from 'node:net';
import { systemCodeOf } from '../platform/errors.ts';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';
import { listenOn } from '../platform/net/listen.ts';
import { kernelAddress } from '../platform/net/socket-tables.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { placedInFile } from './load.ts';
import { WITHOUT_FAMILY } from './sidecar-listeners.ts';

export interface NamedAddress {
  readonly key: string;
  readonly address: ListenAddress;
  /** A machine without the address family has no conflict. */
  readonly mayLack?: true;
}

/** As far as this process may see it. */
export interface Holder {
  readonly pid: number;
  /** Never shown: arguments may hold anything. */
  readonly commandLine: string;
}

const MAX_PROCESSES = 2000;

export interface ReadFile {
  readonly path: string;
  readonly text: string | undefined;
}

/**
 * Returns if `error` has another cause.
 * @param file shows where in it an address stands.
 * @throws {ConfigurationError} with every address that cannot be had.
 */
export async function explainConflicts(
  error: unknown,
  addresses: readonly NamedAddress[],
  file?: ReadFile,
): Promise<void> {
  if (!isOfAddress((error as { cause?: unknown } | null)?.cause)) return;
  const problems = await conflictsOf(addresses);
  if (problems.length === 0) return;
  throw new ConfigurationError(file === undefined ? problems : await placedInFile(problems, file));
}

function isOfAddress(cause: unknown): boolean {
  const code = systemCodeOf(cause);
  return code === 'EADDRINUSE' || code === 'EACCES' || WITHOUT_FAMILY.has(code);
}

async function conflictsOf(addresses: readonly NamedAddress[]): Promise<Problem[]> {
  const problems: Problem[] = [];
  /** Each demo is reported once. */
  const ofDemos = new Map<number, { readonly keys: string[]; readonly index: number }>();
  for (const { key, address, mayLack } of addresses) {
    const code = await refusalOf(address);
    if (code === undefined || (mayLack && WITHOUT_FAMILY.has(code))) continue;
    const value = formatAddress(address);
    if (code !== 'EADDRINUSE') {
      problems.push({
        key,
        value,
        expected: `an address to listen on (${code})`,
        code: 'address_unavailable',
      });
      continue;
    }
    const holder = await holderOf(address);
    const expected =
      holder === undefined
        ? 'an address that is free'
        : `an address that is free: ${nameOf(holder)} listens there`;
    const problem: Problem = { key, value, expected, code: 'address_in_use' };
    if (holder === undefined || commandOf(holder) !== 'demo') {
      problems.push(problem);
      continue;
    }
    const known = ofDemos.get(holder.pid) ?? { keys: [], index: problems.length };
    ofDemos.set(holder.pid, known);
    known.keys.push(key);
    const first = problems[known.index] ?? problem;
    problems[known.index] = { ...first, remedy: remedyFor(holder, known.keys) };
  }
  return problems;
}

function remedyFor({ pid }: Holder, keys: readonly string[]): string {
  const others = keys.length === 1 ? 'another port' : `other ports: ${keys.join(', ')}`;
  return `A demo is running already: end process ${pid} by Ctrl-C, or choose ${others}.`;
}

/** `proxy` by default; undefined for other programs. */
export function commandOf({ commandLine }: Holder): string | undefined {
  const [whole, word = ''] =
    /(?:^|[ /])(?:main\.ts|token-sidecar(?:\.js)?)(?: (\S+))?(?: |$)/.exec(commandLine) ?? [];
  if (whole === undefined) return undefined;
  return word === '' || word.startsWith('-') ? 'proxy' : word;
}

const THIS_PROGRAM = /^(?:\S*\/)?node(?: -\S+)* (?:\S*\/)?token-sidecar(?:\.js)?(?: |$)/;

/** `nginx (process 123)`; this program by its own name, not Node's. */
export function nameOf({ pid, commandLine }: Holder): string {
  if (THIS_PROGRAM.test(commandLine)) return `token-sidecar (process ${pid})`;
  const program = commandLine.split(' ')[0]?.split('/').at(-1) ?? '';
  return /^[\w.-]{1,40}$/.test(program) ? `${program} (process ${pid})` : `process ${pid}`;
}

/** The system's error code. */
export async function refusalOf(address: ListenAddress): Promise<string | undefined> {
  const server = createServer();
  try {
    await listenOn(server, address, 'listener');
    return undefined;
  } catch (error) {
    const { cause } = error as { cause?: unknown };
    return isOfAddress(cause) ? systemCodeOf(cause) : undefined;
  } finally {
    server.close();
  }
}

/**
 * Reads proc(5), so it sees only this network.
 * @param signal stops the search: descriptors may be very many.
 */
export async function holderOf(address: ListenAddress, signal?: AbortSignal): Promise<Holder | undefined> {
  const sockets = new Set(await socketsListeningAt(address));
  if (sockets.size === 0) return undefined;
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids.slice(0, MAX_PROCESSES)) {
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const descriptor of descriptors) {
      if (signal?.aborted) return undefined;
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '');
      if (!sockets.has(target)) continue;
      const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return { pid: Number(pid), commandLine: commandLine.split('\0').join(' ').trim() };
    }
  }
  return undefined;
}

/** Named as descriptors' links name them: `socket:[12345]`. */
async function socketsListeningAt({ host, port }: ListenAddress): Promise<string[]> {
  const tables = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFile(path, 'utf8').catch(() => '')),
  );
  return tables.flatMap((table) =>
    table.split('\n').flatMap((line) => {
      const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
      const [address = '', hexPort = ''] = local.split(':');
      const isListening = state === '0A' && Number.parseInt(hexPort, 16) === port;
      return isListening && isInTheWay(address, host) && inode !== undefined ? [`socket:[${inode}]`] : [];
    }),
  );
}

/**
 * A name may be any address. A socket at all IPv6 addresses takes the IPv4 ones too, unless set otherwise,
 * which its table does not show.
 */
function isInTheWay(local: string, host: string): boolean {
  if (isIP(host) === 0) return true;
  const octets = kernelAddress.octetsOf(host);
  const wanted = kernelAddress.inHex(octets);
  const mapped = kernelAddress.inHex([...kernelAddress.mapped, ...octets]);
  if (isEvery(local)) return isEvery(wanted) || local.length >= wanted.length;
  if (isEvery(wanted))
    return wanted.length >= local.length || local.startsWith(kernelAddress.inHex(kernelAddress.mapped));
  return local === wanted || local === mapped;
}

function isEvery(address: string): boolean {
  return /^0+$/.test(address);
}
