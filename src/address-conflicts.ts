/** Which of a program's addresses cannot be listened on, all at once, and who has them. Loaded where that is in question. */

import { readdir, readFile, readlink } from 'node:fs/promises';
import { createServer, isIP } from 'node:net';
import type { ListenAddress } from './config/config.ts';
import { placedInFile } from './config/load.ts';
import { ConfigurationError, type Problem } from './config/problems.ts';
import { WITHOUT_FAMILY } from './config/sidecar-listeners.ts';
import { formatAddress } from './config/values.ts';
import { systemCodeOf } from './errors.ts';
import { listenOn } from './listen.ts';
import { inHex, MAPPED, octetsOf } from './socket-tables.ts';

/** An address with what named it: a flag, a variable, a key of the file. */
export interface NamedAddress {
  readonly key: string;
  readonly address: ListenAddress;
  /** Of a family that the machine may lack, which is no conflict. */
  readonly mayLack?: true;
}

/** A process, as far as this one may see. */
export interface Holder {
  readonly pid: number;
  /** Program and arguments; not to be shown, as arguments may be anything. */
  readonly commandLine: string;
}

/** More processes than these are not looked through. */
const MOST_PROCESSES = 2000;

/** That named addresses. */
export interface ReadFile {
  readonly path: string;
  readonly text: string | undefined;
}

/**
 * Throws in place of an error by which an address could not be listened on; returns where that was not the reason.
 * @param file shows where in it an address stands.
 * @throws {ConfigurationError} with every address that is not to be had.
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
  /** Of each demo that has some of them, which those are: it is told of once. */
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

/** The command of this program that a process runs, `proxy` where none is named; undefined of another program. */
export function commandOf({ commandLine }: Holder): string | undefined {
  const [whole, word = ''] =
    /(?:^|[ /])(?:main\.ts|token-sidecar(?:\.js)?)(?: (\S+))?(?: |$)/.exec(commandLine) ?? [];
  if (whole === undefined) return undefined;
  return word === '' || word.startsWith('-') ? 'proxy' : word;
}

const THIS_PROGRAM = /^(?:\S*\/)?node(?: -\S+)* (?:\S*\/)?token-sidecar(?:\.js)?(?: |$)/;

/** By its program alone: `nginx (process 123)`, and this one, which Node runs, by its own name. */
export function nameOf({ pid, commandLine }: Holder): string {
  if (THIS_PROGRAM.test(commandLine)) return `token-sidecar (process ${pid})`;
  const program = commandLine.split(' ')[0]?.split('/').at(-1) ?? '';
  return /^[\w.-]{1,40}$/.test(program) ? `${program} (process ${pid})` : `process ${pid}`;
}

/** The system's code, where an address cannot be listened on at this moment. */
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
 * Who listens at an address of this network, or at all of them, by proc(5); undefined where that cannot be seen.
 * @param signal ends the search, as where there are very many descriptors to look at.
 */
export async function holderOf(address: ListenAddress, signal?: AbortSignal): Promise<Holder | undefined> {
  const sockets = new Set(await socketsListeningAt(address));
  if (sockets.size === 0) return undefined;
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids.slice(0, MOST_PROCESSES)) {
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

/** As links of descriptors name them: `socket:[12345]`. */
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
 * Whether whoever listens at `local` leaves `host` to nobody else. A name may stand for any address. A socket at all addresses of
 * IPv6 takes those of IPv4 with them, unless told otherwise, which its table does not say; one of IPv4 takes none of IPv6.
 */
function isInTheWay(local: string, host: string): boolean {
  if (isIP(host) === 0) return true;
  const octets = octetsOf(host);
  const wanted = inHex(octets);
  const mapped = inHex([...MAPPED, ...octets]);
  if (isEvery(local)) return isEvery(wanted) || local.length >= wanted.length;
  if (isEvery(wanted)) return wanted.length >= local.length || local.startsWith(inHex(MAPPED));
  return local === wanted || local === mapped;
}

function isEvery(address: string): boolean {
  return /^0+$/.test(address);
}
