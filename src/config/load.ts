/** Flags win over environment and file. */

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import { MAX_PEM_BYTES, readBoundedFileSync } from '../platform/files/bounded-file.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { nextTurn, yieldEvery } from '../platform/time/async.ts';
import { parseAuthorities } from '../platform/x509/pem.ts';
import type { Config } from './config.ts';
import { withoutFollowUps } from './entries.ts';
import type { FileResult } from './file.ts';
import type { FileConfig, RouteEntry } from './file-schema.ts';
import type { ProxyValues } from './proxy-settings.ts';
import { resolveConfig } from './resolve-config.ts';
import type { SourceText } from './source-text.ts';

/**
 * Reads certificate files, too.
 * @param found problems so far.
 * @param text of the file, if already read.
 * @throws {ConfigurationError} with every problem.
 */
export async function loadConfig(
  given: ProxyValues,
  found: readonly Problem[] = [],
  text?: string,
  gatewayFiles: GatewayFiles = 'judged',
): Promise<Config> {
  const problems: Problem[] = [...found];
  const reading = await readFile(given, problems, text);
  await checkTlsFiles(reading.config, problems, gatewayFiles);
  await nextTurn();
  const config = resolveConfig(reading, given, problems);
  if (problems.length > 0) {
    const source = await reading.source?.();
    throw new ConfigurationError(withoutFollowUps(problems).map(placed(source)));
  }
  await nextTurn();
  return deepFreeze(config);
}

async function readFile(
  { config }: ProxyValues,
  problems: Problem[],
  text: string | undefined,
): Promise<FileResult> {
  if (config === undefined) return { config: {} as FileConfig, understood: true };
  const { readConfigFile } = await import('./file.ts');
  return readConfigFile(config.text, config.key, problems, text);
}

/** Changes nothing if the file cannot be read. */
export async function placedInFile(
  problems: readonly Problem[],
  { path, text }: { readonly path: string; readonly text: string | undefined },
): Promise<Problem[]> {
  if (text === undefined) return [...problems];
  const { parseConfig } = await import('./file.ts');
  const { source } = await parseConfig(text, path, []);
  return problems.map(placed(await source?.()));
}

function placed(source: SourceText | undefined): (problem: Problem) => Problem {
  return (problem) => {
    const of = (problem.value ?? problem.kind) === undefined ? 'key' : 'value';
    const place = problem.place ?? source?.find(problem.key, of);
    return place === undefined ? problem : { ...problem, place };
  };
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value))
    if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}

const ENTRIES_AT_ONCE = 20;

/** `followed` files report their content themselves. */
type GatewayFiles = 'judged' | 'followed';

/** A wrong path stops the start, not the first request. */
async function checkTlsFiles(
  file: FileConfig,
  problems: Problem[],
  gatewayFiles: GatewayFiles,
): Promise<void> {
  const pause = yieldEvery(ENTRIES_AT_ONCE);
  const lists = {
    credentials: file.credentials,
    routes: file.routes,
    'forwardProxy.allow': file.forwardProxy?.allow,
    'capture.hosts': file.capture?.hosts,
    'redirect.hosts': file.redirect?.hosts,
  };
  for (const [list, entries = []] of Object.entries(lists)) {
    for (const [index, { tls }] of entries.entries()) {
      if (tls === undefined) continue;
      checkFiles(`${list}[${index}].tls`, tls, problems);
      await pause();
    }
  }
  if (file.gateway !== undefined && gatewayFiles === 'judged') checkGateway(file.gateway, problems);
}

/** No mistake would show before a caller comes. */
function checkGateway({ tls, clientCaFile }: NonNullable<FileConfig['gateway']>, problems: Problem[]): void {
  if (tls !== undefined) {
    const { cert, key } = checkFiles('gateway.tls', tls, problems);
    if (cert !== undefined && key !== undefined && !cert.checkPrivateKey(key)) {
      const expected = 'the private key of the certificate in certFile';
      problems.push({ key: 'gateway.tls.keyFile', value: tls.keyFile as string, expected });
    }
  }
  if (clientCaFile === undefined) return;
  const authorities = checkPem('gateway.clientCaFile', clientCaFile, problems, parseAuthorities);
  if (typeof authorities !== 'string') return;
  const expected = `certificates of authorities, whose callers are let in, but ${authorities}`;
  problems.push({ key: 'gateway.clientCaFile', value: clientCaFile, expected, code: 'invalid_pem' });
}

interface Identity {
  readonly cert: X509Certificate | undefined;
  readonly key: KeyObject | undefined;
}

function checkFiles(key: string, tls: NonNullable<RouteEntry['tls']>, problems: Problem[]): Identity {
  const { caFile, certFile, keyFile } = tls;
  const certificateOf = (name: string, path: string | undefined) =>
    path === undefined
      ? undefined
      : checkPem(`${key}.${name}`, path, problems, (pem) => new X509Certificate(pem));
  certificateOf('caFile', caFile);
  return {
    cert: certificateOf('certFile', certFile),
    key: keyFile === undefined ? undefined : checkKey(`${key}.keyFile`, keyFile, problems),
  };
}

function checkKey(key: string, path: string, problems: Problem[]): KeyObject | undefined {
  return checkPem(key, path, problems, createPrivateKey, {
    expected: 'a file with a PEM private key, not encrypted',
    remedy: 'Check that the path names a file with -----BEGIN PRIVATE KEY-----.',
  });
}

const OF_CERTIFICATES: Pick<Problem, 'expected' | 'remedy'> = { expected: 'a file of PEM certificates' };

/**
 * Undefined if unusable, which joins `problems`.
 * @param parse throws for wrong text.
 */
export function checkPem<Parsed>(
  key: string,
  path: string,
  problems: Problem[],
  parse: (pem: string) => Parsed,
  wanted = OF_CERTIFICATES,
): Parsed | undefined {
  let pem: string;
  try {
    pem = readBoundedFileSync(path, MAX_PEM_BYTES);
  } catch (error) {
    problems.push({
      key,
      value: path,
      expected: `a readable file (${systemCodeOf(error) ?? messageOf(error)})`,
      code: 'file_unreadable',
    });
    return undefined;
  }
  try {
    return parse(pem);
  } catch {
    problems.push({ key, value: path, code: 'invalid_pem', ...wanted });
    return undefined;
  }
}
