import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { goProgram } from './programs.ts';
import type { Identity } from './surroundings.ts';

/** Of grpc-go's client: those that its own script runs. */
export const CASES = [
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

/** Those that it has beside, and why they are not run. */
export const NOT_RUN: ReadonlyMap<string, string> = new Map([
  ['compute_engine_channel_credentials', OF_GOOGLE],
  ['compute_engine_creds', OF_GOOGLE],
  ['google_default_credentials', OF_GOOGLE],
  ['jwt_token_creds', OF_GOOGLE],
  ['oauth2_auth_token', OF_GOOGLE],
  ['per_rpc_creds', OF_GOOGLE],
  ['service_account_creds', OF_GOOGLE],
  [
    'pick_first_unary',
    'wants a server that names itself, which that of grpc-go does not: it fails without a proxy too',
  ],
]);

/** A machine that does much else is slow, and no case is about that. */
const PATIENCE = ['-soak_overall_timeout_seconds=100', '-soak_per_iteration_max_acceptable_latency_ms=50000'];

/** What hands the two cases on load reports what the server reports. */
const LOAD_REPORTS = `-service_config_json=${JSON.stringify({
  loadBalancingConfig: [{ test_backend_metrics_load_balancer: {} }],
})}`;

/** The command that runs one case. */
export function clientCommand(
  testCase: string,
  { host, port, tls }: { readonly host: string; readonly port: number; readonly tls: boolean },
): readonly [string, ...string[]] {
  const where = [`-server_host=${host}`, `-server_port=${port}`, ...(tls ? ['-use_tls'] : [])];
  return [goProgram('client'), `-test_case=${testCase}`, ...where, LOAD_REPORTS, ...PATIENCE];
}

/** All cases that the client says it has, which leaves out the two that are soaks. */
export async function casesOfHelp(): Promise<readonly string[]> {
  const { stderr } = await promisify(execFile)(goProgram('client'), ['-help']);
  return [...stderr.matchAll(/^\s+(\w+) ?: \w/gm)].map(([, name]) => name as string);
}

/** grpc-go's server at every address, gone after the test. Resolves once it serves. */
export async function startInteropServer(
  port: number,
  identity: Identity | undefined,
  enter: readonly string[] = [],
): Promise<void> {
  const tls =
    identity === undefined
      ? []
      : ['-use_tls', `-tls_cert_file=${identity.cert}`, `-tls_key_file=${identity.key}`];
  const [command, ...args] = [...enter, goProgram('server'), `-port=${port}`, ...tls] as [
    string,
    ...string[],
  ];
  const env = { ...process.env, GRPC_GO_LOG_SEVERITY_LEVEL: 'info' };
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
  const exited = once(child, 'close');
  onTestFinished(async () => {
    child.kill();
    await exited;
  });
  let printed = '';
  const ended = exited.then(() => {
    throw new Error(`the server ended before it served: ${printed}`);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed = (printed + text).slice(-4096);
  });
  while (!printed.includes('interop server listening')) {
    await Promise.race([once(child.stderr, 'data'), ended]);
  }
}
