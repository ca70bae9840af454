import { type Command, type CommandContext, explainingConflicts } from '../config/command.ts';
import type { Config } from '../config/config.ts';
import { loadConfig, placedInFile } from '../config/load.ts';
import { PROXY_SETTINGS, type ProxyValues } from '../config/proxy-settings.ts';
import { type IgnoredVariable, tellIgnored } from '../config/resolve-tracing.ts';
import { readFlags, type Settings, unknownVariables } from '../config/settings.ts';
import { messageOf, SidecarError } from '../platform/errors.ts';
import { EXIT_STATUS_OF } from '../platform/exit-status.ts';
import { readConfigText } from '../platform/files/bounded-file.ts';
import { createLogger } from '../platform/log/logger.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { leaveTerminationMessage, TERMINATION_LOG, whenAborted } from '../platform/process/shutdown.ts';
import { tuneHeap } from '../platform/process/small-heap.ts';
import { systemClock } from '../platform/time/clock.ts';
import { whyNeverGranted } from '../token/condition.ts';
import { loadSidecarConfiguration, namedListeners } from './configuration.ts';
import { type Sidecar, type SidecarOptions, startSidecar } from './sidecar.ts';
import { readPod } from './status/pod.ts';

const SETTINGS = {
  ...PROXY_SETTINGS,
  'termination-log': {
    argument: 'FILE',
    description: 'Gets one sentence if the sidecar ends without ever having had a token; it has to exist',
    default: TERMINATION_LOG,
  },
} as const satisfies Settings;

export const proxy: Command = {
  summary: 'Run the sidecar: obtain, renew and inject tokens (the default command)',
  settings: SETTINGS,
  examples: [
    [
      'TOKEN_SIDECAR_AUTH_URL=https://sso.example.com TOKEN_SIDECAR_UPSTREAM=https://api.example.com token-sidecar',
      'one upstream, by the environment',
    ],
    ['token-sidecar --config /etc/token-sidecar/token-sidecar.yaml', 'as many as the file has'],
  ],
  async run(context) {
    const given = readFlags(SETTINGS, context.args, context.env);
    const { 'termination-log': file, ...rest } = given;
    const terminationLog = file?.text ?? TERMINATION_LOG;
    // Reading `shutdown` takes over the signals, so that one that comes during loading also ends with 0.
    const { shutdown } = context;
    try {
      const path = rest.config?.text;
      const read = async (): Promise<string | undefined> =>
        path === undefined ? undefined : readConfigText(path).catch(() => undefined);
      const text = await read();
      const problems = unknownVariables(SETTINGS, context.env);
      const { config, tracing, ignored } = await loadSidecarConfiguration(rest, context.env, problems, text);
      await refuseGateway(config, { path, text });
      if (shutdown.signal.aborted) return 0;
      const load = async (changed?: string): Promise<Config> => {
        const present = changed ?? (await read());
        const next = await loadConfig(rest, [], present);
        await refuseGateway(next, { path, text: present });
        return next;
      };
      const file = path === undefined ? {} : { file: { path, text, load } };
      const traced = tracing === undefined ? {} : { tracing };
      return await serve({ config, ...file, ...traced }, ignored, rest, terminationLog, context);
    } catch (error) {
      // For `kubectl describe pod`.
      if (error instanceof SidecarError) await leaveTerminationMessage(terminationLog, messageOf(error));
      throw error;
    }
  },
};

/** Without its frontend, a gateway's routes would be open to anyone. */
async function refuseGateway(
  { gateway }: Config,
  { path = '', text }: { readonly path: string | undefined; readonly text: string | undefined },
): Promise<void> {
  if (gateway === undefined) return;
  const expected = 'nothing of it in the file of a sidecar: `token-sidecar gateway` serves it';
  const problem: Problem = { key: 'gateway', expected, code: 'conflicting_settings' };
  throw new ConfigurationError(await placedInFile([problem], { path, text }));
}

async function serve(
  configured: Pick<SidecarOptions, 'config' | 'file' | 'tracing'>,
  ignored: readonly IgnoredVariable[],
  given: ProxyValues,
  terminationLog: string,
  { logOutput, shutdown, env }: CommandContext,
): Promise<number> {
  const log = createLogger(configured.config.logLevel, logOutput);
  tellIgnored(ignored, log);
  let isAppDone = false;
  let running: Sidecar | undefined;
  if (configured.file !== undefined) shutdown.takeHangups(() => running?.reload());
  const options: SidecarOptions = {
    ...configured,
    log,
    accessLogger: createLogger('info', logOutput),
    logLosses: logOutput.losses,
    pod: readPod(env),
    quit: () => {
      isAppDone = true;
      shutdown.request();
    },
  };
  const addresses = namedListeners(configured.config, given);
  const sidecar = await explainingConflicts(() => startSidecar(options), addresses, configured.file);
  running = sidecar;
  tuneHeap();
  await whenAborted(shutdown.signal);
  // If the app says that it is done, its Job should complete.
  const failure = isAppDone ? undefined : failedStart(sidecar);
  if (failure !== undefined) {
    log.error({ code: failure.code }, failure.message);
    // Before the drain, which the kubelet may cut short.
    await leaveTerminationMessage(terminationLog, failure.message, log);
  }
  await sidecar.stop();
  return failure === undefined ? 0 : EXIT_STATUS_OF[failure.code];
}

function failedStart({ config: { credentials }, tokens }: Sidecar) {
  for (const token of tokens) {
    const config = credentials.find(({ name }) => name === token.name);
    const failure = config && whyNeverGranted(config, token.snapshot(), systemClock.now().wallMs);
    if (failure !== undefined) return failure;
  }
  return undefined;
}
