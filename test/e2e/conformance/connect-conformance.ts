import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { temporaryFile } from '../../wire/temporary-file.ts';
import { goProgram } from './programs.ts';

export const ALL_PROTOCOLS = ['PROTOCOL_CONNECT', 'PROTOCOL_GRPC', 'PROTOCOL_GRPC_WEB'] as const;

/** gRPC needs HTTP/2 on the whole way. */
export const PROTOCOLS_OF_HTTP1 = ['PROTOCOL_CONNECT', 'PROTOCOL_GRPC_WEB'] as const;

/** Bodies are octets to a proxy, but each of these has other fields. */
export const ALL_COMPRESSIONS: readonly string[] = [
  'COMPRESSION_IDENTITY',
  'COMPRESSION_GZIP',
  'COMPRESSION_BR',
  'COMPRESSION_ZSTD',
  'COMPRESSION_DEFLATE',
  'COMPRESSION_SNAPPY',
];

export const NO_COMPRESSION = ALL_COMPRESSIONS.slice(0, 1);

/** As the suite's own configuration has them. */
export interface Features {
  readonly versions: readonly ('HTTP_VERSION_1' | 'HTTP_VERSION_2')[];
  readonly protocols: readonly string[];
  readonly compressions: readonly string[];
  readonly supportsTls: boolean;
}

export interface ConformanceOptions {
  readonly mode: 'server' | 'client';
  readonly features: Features;
  /** Combinations of features that are left out. */
  readonly excludeCases?: readonly Readonly<Record<string, unknown>>[];
  /** What is under test: a program in TypeScript, beside this file, and its arguments. */
  readonly program: readonly [string, ...string[]];
  readonly flags?: readonly string[];
  /** Where it runs: what a command is put behind. */
  readonly enter?: readonly string[];
}

export interface Outcome {
  readonly passed: number;
  /** By name. */
  readonly failed: readonly string[];
  /** What the suite says of them. */
  readonly output: string;
}

/** Runs connectconformance. @throws {Error} with what it printed, where some of it could not be run. */
export async function runConnectConformance(options: ConformanceOptions): Promise<Outcome> {
  const { mode, features, excludeCases = [], program, flags = [], enter = [] } = options;
  const config = { features: { supportsHalfDuplexBidiOverHttp1: true, ...features }, excludeCases };
  const file = await temporaryFile('config.yaml', JSON.stringify(config));
  const [name, ...args] = program;
  const underTest = [process.execPath, join(import.meta.dirname, name), ...args];
  const runner = [goProgram('connectconformance'), '--mode', mode, '--conf', file, ...flags];
  const [command, ...rest] = [...enter, ...runner, '--', ...underTest] as [string, ...string[]];
  const output = await new Promise<string>((resolve) => {
    // It exits 1 where a case fails.
    execFile(command, rest, { maxBuffer: 1 << 28 }, (_, stdout, stderr) => resolve(stdout + stderr));
  });
  const [, passed] = /^(\d+) passed, \d+ failed$/m.exec(output) ?? [];
  if (passed === undefined || output.includes('could not be run')) throw new Error(output);
  const failed = [...output.matchAll(/^FAILED: (.*):$/gm)].map(([, named]) => named as string);
  return { passed: Number(passed), failed, output };
}
