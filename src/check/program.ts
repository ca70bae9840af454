import type { Command, CommandContext } from '../config/command.ts';
import { loadConfig } from '../config/load.ts';
import { PROXY_SETTINGS, type ProxyValues } from '../config/proxy-settings.ts';
import {
  type GivenValue,
  readFlags,
  readValue,
  type Settings,
  unknownVariables,
} from '../config/settings.ts';
import { didYouMean } from '../config/suggestion.ts';
import { formats, oneOf, type ValueFormat } from '../config/values.ts';
import { type ListenAddress, reachableAddress } from '../platform/net/address.ts';
import { ConfigurationError, type Problem } from '../platform/problems.ts';
import { systemClock } from '../platform/time/clock.ts';
import {
  loadSidecarConfiguration,
  openLookups,
  type SidecarConfiguration,
} from '../sidecar/configuration.ts';
import type { CheckContext, Finding } from './check-context.ts';
import { exitStatusOfFindings, formatJson, formatTable } from './report.ts';

const yesOrNo = oneOf(['true', 'false']);

const SETTINGS = {
  ...PROXY_SETTINGS,
  json: { description: 'Print the findings as JSON', default: 'false' },
  offline: { description: 'Look at configuration and files alone; ask nobody', default: 'false' },
  status: {
    description: 'Ask a running sidecar how it is, at its admin listener, and try nothing',
    default: 'false',
  },
  probe: {
    argument: 'PATHS',
    description:
      'Paths by commas, below the upstreams, that are asked for without and with a token: /health for all routes, or ROUTE=/health for one',
    default: 'none',
  },
  'check-timeout': {
    argument: 'DURATION',
    description: 'Bound on all steps together',
    default: '60s',
  },
} as const satisfies Settings;

/** Also runs in the sidecar's container, with its environment. */
const BESIDE_A_SIDECAR: Settings = {
  ...SETTINGS,
  'termination-log': { description: 'of the sidecar' },
};

export const check: Command = {
  summary: 'Look at everything that the sidecar needs, a step at a time, and say what to do; change nothing',
  settings: SETTINGS,
  examples: [
    [
      'kubectl exec deploy/shop -c token-sidecar -- node /app/dist/token-sidecar.js check',
      'in a pod, beside its sidecar and with its settings',
    ],
    [
      'kubectl exec deploy/shop -c token-sidecar -- node /app/dist/token-sidecar.js check --status',
      'how the sidecar there is doing',
    ],
    ['token-sidecar check --config token-sidecar.yaml --offline', 'a file alone, before it is rolled out'],
    [
      'token-sidecar check --probe payments=/health',
      'with a request to one upstream, without and with a token',
    ],
  ],
  async run({ args, env, stdout, colour = false }) {
    const {
      json,
      offline,
      status,
      probe,
      'check-timeout': timeout,
      ...given
    } = readFlags(SETTINGS, args, env);
    const problems = unknownVariables(BESIDE_A_SIDECAR, env);
    const isJson = readValue(json, yesOrNo, problems) === 'true';
    const isOffline = readValue(offline, yesOrNo, problems) === 'true';
    const asksRunning = readValue(status, yesOrNo, problems) === 'true';
    const withinMs = readValue(timeout, checkTimeout, problems) ?? 60_000;
    const probed = readValue(probe, probedPaths, problems) ?? [];
    checkTogether({ offline: isOffline, status: asksRunning, probe: probe !== undefined }, problems);

    const look = async () =>
      asksRunning
        ? await inTheTime(withinMs, false, async (examination) => {
            const { checkRunning } = await import('./running.ts');
            return await checkRunning(await adminAddress(given, problems), examination);
          })
        : await checkAll(
            await loadSidecarConfiguration(given, env, problems),
            env,
            probe,
            probed,
            withinMs,
            isOffline,
          );
    const findings = await look().catch(async (error: unknown) => {
      // Readers of the JSON also learn why nothing was examined.
      if (!isJson || !(error instanceof ConfigurationError)) throw error;
      const { invalidConfiguration } = await import('./check-all.ts');
      return invalidConfiguration(error.problems);
    });
    stdout.write(isJson ? formatJson(findings) : formatTable(findings, { colour }));
    return exitStatusOfFindings(findings);
  },
};

const checkTimeout: ValueFormat<number> = {
  expected: 'a duration from 1s to 10m',
  parse(text) {
    const ms = formats.duration.parse(text);
    return ms !== undefined && ms >= 1000 && ms <= 600_000 ? ms : undefined;
  },
};

interface ProbedPath {
  /** Undefined means every route. */
  readonly route: string | undefined;
  readonly path: string;
}

const probedPaths: ValueFormat<readonly ProbedPath[]> = {
  expected: 'paths by commas, each as /path or ROUTE=/path',
  parse(text) {
    const paths = text.split(',').map((entry): ProbedPath | undefined => {
      const [, route, path] = /^(?:([^=/]+)=)?(\/[\x21-\x2b\x2d-\x7e]*)$/.exec(entry.trim()) ?? [];
      return path === undefined ? undefined : { route, path };
    });
    const understood = paths.filter((path) => path !== undefined);
    return understood.length === paths.length ? understood : undefined;
  },
};

/** A flag without effect is a mistake. */
function checkTogether(
  { offline, status, probe }: Readonly<Record<'offline' | 'status' | 'probe', boolean>>,
  problems: Problem[],
): void {
  const conflict = (key: string, other: string) =>
    problems.push({ key, expected: `nothing beside ${other}`, code: 'conflicting_settings' });
  if (offline && status) conflict('--offline', '--status, which asks the sidecar');
  if (probe && offline) conflict('--probe', '--offline, which asks nobody');
  if (probe && status) conflict('--probe', '--status, which tries nothing');
}

async function checkAll(
  { config, tracing, ignored }: SidecarConfiguration,
  env: CommandContext['env'],
  probe: GivenValue | undefined,
  probed: readonly ProbedPath[],
  withinMs: number,
  isOffline: boolean,
): Promise<Finding[]> {
  const names = config.routes.map(({ name }) => name);
  const unknown = probed.find(({ route }) => route !== undefined && !names.includes(route))?.route;
  if (unknown !== undefined && probe !== undefined) {
    const expected = `the name of a route: ${names.join(', ')}${didYouMean(unknown, names)}`;
    throw new ConfigurationError([{ key: probe.key, value: unknown, expected, code: 'invalid_value' }]);
  }
  const paths = new Map(
    names.flatMap((name) => {
      const own =
        probed.find(({ route }) => route === name) ?? probed.find(({ route }) => route === undefined);
      return own === undefined ? [] : [[name, own.path] as const];
    }),
  );
  return await inTheTime(withinMs, isOffline, async (examination) => {
    const { checkAll, checkTime } = await import('./check-all.ts');
    const { checkTracing } = await import('./check-all.ts');
    const lookup = isOffline ? undefined : (await openLookups(config, systemClock))?.own;
    const findings = await checkAll(
      config,
      paths,
      lookup === undefined ? examination : { ...examination, lookup },
    );
    findings.push(...checkTracing(tracing, ignored));
    if (config.interception === undefined) return [...findings, ...checkTime(examination)];
    const { checkInterception } = await import('./interception.ts');
    const path = probed.find(({ route }) => route === undefined)?.path;
    const options = { config, env, path, user: process.getuid?.() };
    const intercepted = await checkInterception(options, examination);
    return [...findings, ...intercepted, ...checkTime(examination)];
  });
}

async function inTheTime(
  withinMs: number,
  isOffline: boolean,
  steps: (examination: CheckContext) => Promise<Finding[]>,
): Promise<Finding[]> {
  const time = new AbortController();
  const cancel = systemClock.after(withinMs, () => time.abort());
  try {
    return await steps({ clock: systemClock, signal: time.signal, isOffline });
  } finally {
    cancel();
  }
}

/** A file that is not valid is told by the sidecar that refused it. @throws {ConfigurationError} with `problems`. */
async function adminAddress(given: ProxyValues, problems: Problem[]): Promise<ListenAddress> {
  const address = readValue(given['admin-listen'], formats.listenAddress, problems);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const config =
    given.config === undefined ? undefined : await loadConfig(given, []).catch(undefinedIfInvalid);
  return reachableAddress(config?.admin.listen ?? address ?? { host: '127.0.0.1', port: 15_081 });
}

function undefinedIfInvalid(error: unknown): undefined {
  if (!(error instanceof ConfigurationError)) throw error;
}
