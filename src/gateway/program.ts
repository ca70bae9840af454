import { type Command, type CommandContext, explainingConflicts } from '../config/command.ts';
import type { Config, GatewayConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { PROXY_SETTINGS } from '../config/proxy-settings.ts';
import { type IgnoredVariable, tellIgnored } from '../config/resolve-tracing.ts';
import { readFlags, type Settings, unknownVariables } from '../config/settings.ts';
import { readConfigText } from '../platform/files/bounded-file.ts';
import { createLogger } from '../platform/log/logger.ts';
import { ConfigurationError } from '../platform/problems.ts';
import { whenAborted } from '../platform/process/shutdown.ts';
import { tuneHeap } from '../platform/process/small-heap.ts';
import { loadSidecarConfiguration, namedListeners } from '../sidecar/configuration.ts';
import { type Frontend, type Sidecar, type SidecarOptions, startSidecar } from '../sidecar/sidecar.ts';
import { readPod } from '../sidecar/status/pod.ts';
import { gatewayFrontend } from './gateway.ts';

/** All else is set in the file. */
const GATEWAY_SETTINGS = {
  config: PROXY_SETTINGS.config,
  'admin-listen': PROXY_SETTINGS['admin-listen'],
  'admin-hosts': PROXY_SETTINGS['admin-hosts'],
  'log-level': PROXY_SETTINGS['log-level'],
  'access-log': PROXY_SETTINGS['access-log'],
  kubeconfig: {
    argument: 'FILE',
    description: 'Cluster whose service account tokens callers show, if this is no pod of it',
  },
} as const satisfies Settings;

export const gateway: Command = {
  summary:
    "Run the gateway: the sidecar's routes over TLS, for callers of other pods that prove who they are",
  settings: GATEWAY_SETTINGS,
  examples: [
    [
      'token-sidecar gateway --config /etc/token-sidecar/token-sidecar.yaml',
      'its section gateway says where it listens and who may use which route',
    ],
  ],
  async run(context) {
    const { kubeconfig, ...given } = readFlags(GATEWAY_SETTINGS, context.args, context.env);
    // Reading `shutdown` takes over the signals, so that one that comes during loading also ends with 0.
    const { shutdown } = context;
    const path = given.config?.text;
    if (path === undefined) {
      throw new ConfigurationError([
        { key: '--config', expected: 'a configuration file with a section gateway' },
      ]);
    }
    // If the file cannot be read, loading says why.
    const text = await readConfigText(path).catch(() => undefined);
    const problems = unknownVariables(GATEWAY_SETTINGS, context.env);
    const { config, tracing, ignored } = await loadSidecarConfiguration(given, context.env, problems, text);
    const section = gatewayOf(config);
    if (shutdown.signal.aborted) return 0;
    const load = async (changed?: string): Promise<Config> => {
      // A half-renewed certificate must not block a change of routes. A changed path needs a restart, which judges the
      // files.
      const next = await loadConfig(given, [], changed, 'followed');
      gatewayOf(next);
      return next;
    };
    const traced = tracing === undefined ? {} : { tracing };
    const configured = { config, file: { path, text, load }, ...traced };
    return await explainingConflicts(
      () => serve(configured, ignored, gatewayFrontend(section, { kubeconfig: kubeconfig?.text }), context),
      namedListeners(config, given),
      configured.file,
    );
  },
};

/** @throws {ConfigurationError} if the file has no section on callers. */
function gatewayOf({ gateway: section }: Config): GatewayConfig {
  if (section !== undefined) return section;
  throw new ConfigurationError([
    { key: 'gateway', expected: 'where callers come in, and which may use which route' },
  ]);
}

async function serve(
  configured: Pick<SidecarOptions, 'config' | 'file' | 'tracing'>,
  ignored: readonly IgnoredVariable[],
  frontend: Frontend,
  { logOutput, shutdown, env }: CommandContext,
): Promise<number> {
  const log = createLogger(configured.config.logLevel, logOutput);
  tellIgnored(ignored, log);
  let running: Sidecar | undefined;
  shutdown.takeHangups(() => running?.reload());
  running = await startSidecar({
    ...configured,
    log,
    accessLogger: createLogger('info', logOutput),
    logLosses: logOutput.losses,
    pod: readPod(env),
    quit: () => shutdown.request(),
    frontend,
  });
  tuneHeap();
  await whenAborted(shutdown.signal);
  await running.stop();
  return 0;
}
