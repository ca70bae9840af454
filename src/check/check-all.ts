import { commandOf, type Holder, holderOf, nameOf, refusalOf } from '../config/address-conflicts.ts';
import type { Config, CredentialConfig } from '../config/config.ts';
import { policiesOf } from '../config/entries.ts';
import type { IgnoredVariable, TracingConfig } from '../config/resolve-tracing.ts';
import {
  OPEN_LISTENER,
  openListener,
  type SidecarListener,
  sidecarListeners,
  WITHOUT_FAMILY,
} from '../config/sidecar-listeners.ts';
import { quoted } from '../platform/log/redacted-text.ts';
import { formatAddress, reachableAddress } from '../platform/net/address.ts';
import { codeOf, type Problem, remedyOf } from '../platform/problems.ts';
import { about, type CheckContext, type Finding, mapConcurrent } from './check-context.ts';
import { checkCredential } from './credential.ts';
import { askStatus } from './running.ts';
import { checkUpstream, upstreamsOf } from './upstream.ts';

/** @param probes paths to request, by route. */
export async function checkAll(
  config: Config,
  probes: ReadonlyMap<string, string>,
  examination: CheckContext,
): Promise<Finding[]> {
  const listeners = examination.isOffline ? [] : await checkListeners(config, examination);
  const credentials = await mapConcurrent(config.credentials, (one) => checkCredential(one, examination));
  const tokens = new Map(config.credentials.map(({ name }, index) => [name, credentials[index]?.token]));
  const upstreams = await mapConcurrent(upstreamsOf(config, probes), (one) =>
    checkUpstream(one, config, tokens.get(one.policy.credential), examination),
  );
  return [
    about(undefined).ok('configuration', described(config)),
    ...checkCallers(config),
    ...listeners,
    ...credentials.flatMap(({ findings }, index) => [
      ...checkUse(config, config.credentials[index]),
      ...findings,
    ]),
    ...upstreams.flat(),
  ];
}

/** Empty if the time sufficed. */
export function checkTime({ signal }: Pick<CheckContext, 'signal'>): Finding[] {
  if (!signal.aborted) return [];
  const remedy = 'look at the steps that had no answer, or give more time by --check-timeout';
  return [about(undefined).failure('time', 'provider_unavailable', 'the time for all steps was up', remedy)];
}

export async function checkListeners(config: Config, examination: CheckContext): Promise<Finding[]> {
  const findings: Finding[] = [];
  // One at a time: two may have the same port by mistake.
  for (const listener of sidecarListeners(config)) {
    findings.push(await checkListener(listener, config, examination));
  }
  return findings;
}

async function checkListener(
  { what, address, mayLack }: SidecarListener,
  config: Config,
  examination: CheckContext,
): Promise<Finding> {
  const of = about(what);
  const where = formatAddress(address);
  if (address.port === 0) return of.ok('listener', `${where}: the system picks a port`);
  // An address of the sidecar is not tried, in case it restarts now.
  const holder = await holderOf(address, examination.signal);
  const ours = of.ok('listener', `${where}: the sidecar listens there`);
  if (holder !== undefined && (await isSidecar(holder, config, examination))) return ours;
  const code = await refusalOf(address);
  if (code === undefined) return of.ok('listener', `${where} is free`);
  if (mayLack && WITHOUT_FAMILY.has(code)) {
    return of.ok('listener', `${where}: this machine has none, and the sidecar starts without it`);
  }
  if (code !== 'EADDRINUSE') {
    const remedy =
      code === 'EACCES' && address.port < 1024
        ? 'choose a port of at least 1024, or let the pod have the sysctl net.ipv4.ip_unprivileged_port_start: "0"'
        : 'choose an address of this machine, and a port of at least 1024';
    return of.failure('listener', 'configuration', `${where}: ${code}`, remedy);
  }
  if (holder === undefined && (await isSidecar(undefined, config, examination))) return ours;
  const who = holder === undefined ? 'another program' : nameOf(holder);
  const detail = `${where}: ${who} listens there`;
  return of.failure('listener', 'configuration', detail, 'end that program, or choose another port');
}

/** By its command line, or its admin listener's answer. A demo runs one. */
async function isSidecar(
  holder: Holder | undefined,
  { admin, gateway }: Config,
  examination: CheckContext,
): Promise<boolean> {
  if (holder === undefined) return 'status' in (await askStatus(reachableAddress(admin.listen), examination));
  const command = commandOf(holder);
  return gateway === undefined ? command === 'proxy' || command === 'demo' : command === 'gateway';
}

function described(config: Config): string {
  const { credentials, routes } = config;
  const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`;
  const hosts = policiesOf(config).length - routes.length;
  const parts = [count(credentials.length, 'credential'), count(routes.length, 'route')];
  return [...parts, ...(hosts === 0 ? [] : [count(hosts, 'host')])].join(', ');
}

function checkCallers(config: Config): Finding[] {
  const open = openListener(config);
  if (open === undefined) return [];
  const { fault, remedy } = OPEN_LISTENER;
  return [about('proxy').warning('callers', `${formatAddress(open)}: ${fault}`, remedy)];
}

function checkUse(config: Config, credential: CredentialConfig | undefined): Finding[] {
  if (credential === undefined || credential.output !== undefined) return [];
  const { name } = credential;
  if (policiesOf(config).some((policy) => policy.credential === name)) return [];
  return [
    about(`credential ${name}`).warning(
      'credential_use',
      'no route, destination, captured host or output uses it, and the pod waits for its token all the same',
      'remove it, or name it where its token is wanted',
    ),
  ];
}

export function checkTracing(
  tracing: TracingConfig | undefined,
  ignored: readonly IgnoredVariable[],
): Finding[] {
  const of = about(undefined);
  return [
    ...(tracing === undefined
      ? []
      : [of.ok('tracing', `spans are exported by ${tracing.protocol}, sampled by ${tracing.sampler}`)]),
    ...ignored.map(({ key, value, expected }) =>
      of.warning('tracing', `${key}: ${quoted(value, key)} is ignored`, `write ${expected}, or take it away`),
    ),
  ];
}

export function invalidConfiguration(problems: readonly Problem[]): Finding[] {
  return problems.map((problem) => {
    const { key, expected, place } = problem;
    const where =
      place === undefined || key.startsWith(place.file)
        ? ''
        : ` (${place.file}:${place.line}:${place.column})`;
    const detail = `${codeOf(problem)}: ${key}${where}: expected ${expected}`;
    return about(undefined).failure('configuration', 'configuration', detail, remedyOf(problem));
  });
}
