import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { goProgram, javaProgram } from './programs.ts';
import type { Identity } from './surroundings.ts';

/** What gRPC's description of these suites has, and both libraries. */
const COMMON_CASES = [
  'empty_unary',
  'large_unary',
  'client_streaming',
  'server_streaming',
  'ping_pong',
  'empty_stream',
  'timeout_on_sleeping_server',
  'cancel_after_begin',
  'cancel_after_first_response',
  'status_code_and_message',
  'special_status_message',
  'custom_metadata',
  'unimplemented_method',
  'unimplemented_service',
  'orca_per_rpc',
  'orca_oob',
  'rpc_soak',
  'channel_soak',
] as const;

const OF_GOOGLE = 'needs an account of Google';

const CASES_OF_GOOGLE = [
  'compute_engine_channel_credentials',
  'compute_engine_creds',
  'google_default_credentials',
  'jwt_token_creds',
  'oauth2_auth_token',
  'per_rpc_creds',
  'service_account_creds',
].map((name) => [name, OF_GOOGLE] as const);

export interface Destination {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

/** A library's client. */
export interface InteropClient {
  readonly library: string;
  /** Those that are run. */
  readonly cases: readonly string[];
  /** Those that it has beside, and why they are not run. */
  readonly notRun: ReadonlyMap<string, string>;
  /** The command that runs one case. */
  command(testCase: string, destination: Destination): readonly [string, ...string[]];
  /** All cases that its help has. */
  casesOfHelp(): Promise<readonly string[]>;
}

export const GO_CLIENT: InteropClient = {
  library: 'grpc-go',
  cases: COMMON_CASES,
  notRun: new Map([
    ...CASES_OF_GOOGLE,
    [
      'pick_first_unary',
      'wants a server that names itself, which that of grpc-go does not: it fails without a proxy too',
    ],
  ]),
  command: (testCase, { host, port, tls }) => [
    goProgram('client'),
    ...flags({ test_case: testCase, server_host: host, server_port: port, use_tls: tls }),
  ],
  casesOfHelp: () => casesIn([goProgram('client'), '-help']),
};

export const JAVA_CLIENT: InteropClient = {
  library: 'grpc-java',
  cases: [
    ...COMMON_CASES,
    'client_compressed_unary_noprobe',
    'client_compressed_streaming_noprobe',
    'server_compressed_unary',
    'server_compressed_streaming',
    'very_large_request',
    'pick_first_unary',
  ],
  notRun: new Map([
    ...CASES_OF_GOOGLE,
    ...['cacheable_unary', 'client_compressed_unary', 'client_compressed_streaming'].map(
      (name) => [name, 'fails with the server of grpc-java, without a proxy too'] as const,
    ),
  ]),
  command: (testCase, { host, port, tls }) => [
    ...javaProgram('TestServiceClient'),
    ...flags({ test_case: testCase, server_host: host, server_port: port, use_tls: tls }),
  ],
  casesOfHelp: () => casesIn([...javaProgram('TestServiceClient'), '--help']),
};

/** Both libraries name them alike. */
function flags(values: Readonly<Record<string, string | number | boolean>>): readonly string[] {
  const all = {
    ...values,
    // A machine that does much else is slow, and no case is about that.
    soak_overall_timeout_seconds: 100,
    soak_per_iteration_max_acceptable_latency_ms: 50_000,
    // What hands the two cases on load reports what the server reports.
    service_config_json: JSON.stringify({
      loadBalancingConfig: [{ test_backend_metrics_load_balancer: {} }],
    }),
  };
  return Object.entries(all).map(([name, value]) => `--${name}=${value}`);
}

async function casesIn([command, ...args]: readonly [string, ...string[]]): Promise<readonly string[]> {
  // That of Java exits 1.
  const help = await promisify(execFile)(command, args).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return [...(help.stdout + help.stderr).matchAll(/^(?: {6}| {4}\t {8})(\w+) ?: /gm)].map(
    ([, name]) => name as string,
  );
}

/** grpc-go's server at every address, gone after the test. Resolves once it serves. */
export async function startGoServer(
  port: number,
  identity: Identity | undefined,
  enter: readonly string[] = [],
): Promise<void> {
  const tls =
    identity === undefined
      ? []
      : ['-use_tls', `-tls_cert_file=${identity.cert}`, `-tls_key_file=${identity.key}`];
  await start([...enter, goProgram('server'), `-port=${port}`, ...tls], 'interop server listening');
}

/** grpc-java's server, as that of grpc-go, without TLS. */
export async function startJavaServer(port: number): Promise<void> {
  await start([...javaProgram('TestServiceServer'), `--port=${port}`, '--use_tls=false'], 'Server started');
}

async function start(program: readonly string[], ready: string): Promise<void> {
  const [command, ...args] = program as [string, ...string[]];
  // Without it grpc-go's says nothing.
  const env = { ...process.env, GRPC_GO_LOG_SEVERITY_LEVEL: 'info' };
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const exited = once(child, 'close');
  onTestFinished(async () => {
    child.kill();
    await exited;
  });
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    const take = (text: string): void => {
      printed = (printed + text).slice(-4096);
      if (printed.includes(ready)) resolve();
    };
    child.stdout.setEncoding('utf8').on('data', take);
    child.stderr.setEncoding('utf8').on('data', take);
    child.once('error', reject);
    child.once('close', () => reject(new Error(`the server ended before it served: ${printed}`)));
  });
}
