import * as v from 'valibot';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';
import { http } from '../platform/net/node-http.ts';
import { VERSION } from '../platform/version.ts';
import {
  type About,
  about,
  type CheckContext,
  type Failure,
  type Finding,
  inTime,
  wordsFor,
} from './check-context.ts';
import type { StepName } from './steps.ts';

export async function checkRunning(
  admin: ListenAddress,
  examination: Pick<CheckContext, 'clock' | 'signal'>,
): Promise<Finding[]> {
  const of = about(`at ${formatAddress(admin)}`);
  const asked = await askStatus(admin, examination);
  if ('wrong' in asked) {
    const remedy = 'run it in the container of the sidecar, or name its admin listener by --admin-listen';
    return [of.failure('running_sidecar', 'provider_unavailable', asked.wrong, remedy)];
  }
  return describeStatus(asked.status, of);
}

function describeStatus(status: SidecarStatus, of: About): Finding[] {
  const { problems } = status.verdict;
  const problemsOf = (kind: Kind, name: string) =>
    problems.filter((problem) => problem.about?.kind === kind && problem.about.name === name);
  const names = new Set(status.routes.map(({ name }) => name));
  const ofOthers = problems.filter((problem) => kindOf(problem) === 'sidecar');
  // Hosts that are captured or of the forward proxy count as routes with other names.
  const ofHosts = problems.filter(
    (problem) => kindOf(problem) === 'route' && !names.has(problem.about?.name ?? ''),
  );
  return [
    describeVersion(status, of),
    ...ofOthers.map((problem) => describeProblem(problem, of, 'running_sidecar', whatToDo(status))),
    ...describeConfiguration(status, of),
    ...status.credentials.flatMap((one) => describeCredential(one, problemsOf('credential', one.name))),
    ...status.routes.flatMap((one) => describeRoute(one, problemsOf('route', one.name))),
    ...ofHosts.map((problem) => describeTraffic(problem, problem.about?.name ?? '')),
  ];
}

type Kind = 'credential' | 'route' | 'configuration' | 'sidecar';

/** A newer sidecar may have other kinds. */
function kindOf({ about: subject }: SidecarProblem): Kind {
  const known: readonly Kind[] = ['credential', 'route', 'configuration'];
  return known.find((kind) => kind === subject?.kind) ?? 'sidecar';
}

function describeProblem(
  { level, what, since, why, next, nextAt, runbook }: SidecarProblem,
  of: About,
  step: StepName,
  remedy: string,
  failure: Failure = 'provider_unavailable',
): Finding {
  const begun = `${what}${since === undefined ? '' : ` since ${since}`}`;
  const then = `${next}${nextAt === undefined ? '' : ` at ${nextAt}`}`;
  const detail = plain([begun, ...(why === undefined ? [] : [why.replace(/\.$/, '')]), then].join('; '));
  const todo = runbook === undefined ? remedy : `${remedy}; docs/runbooks/${runbook}.md`;
  return level === 'failing' ? of.failure(step, failure, detail, todo) : of.warning(step, detail, todo);
}

function whatToDo({ draining }: SidecarStatus): string {
  return draining ? 'it is being ended: look at the pod that replaces it' : 'look at its log';
}

function describeVersion({ version, uptimeSeconds }: SidecarStatus, of: About): Finding {
  const detail = `version ${plain(version)}, up for ${duration(uptimeSeconds)}`;
  return version === VERSION
    ? of.ok('running_sidecar', detail)
    : of.warning(
        'running_sidecar',
        `${detail}; this program is ${VERSION}`,
        'restart the pod if it is to have this version',
      );
}

function describeConfiguration({ configuration, verdict }: SidecarStatus, of: About): Finding[] {
  if (configuration === undefined) return [];
  const { file, generation, state, errors } = configuration;
  const problems = verdict.problems.filter((problem) => kindOf(problem) === 'configuration');
  if (problems.length === 0) {
    const next = state === 'waiting' ? 'the next one waits for its tokens' : 'it is what the file says';
    return [of.ok('running_configuration', `generation ${generation} of ${plain(file)}: ${next}`)];
  }
  // The first error of the file says more than that there are some.
  const [first = ''] = errors?.split('\n') ?? [];
  return problems.map((problem) => {
    const told = first === '' ? problem : { ...problem, why: first };
    return describeProblem(told, of, 'running_configuration', remedyForFile(configuration));
  });
}

function remedyForFile({ file, state, reason }: NonNullable<SidecarStatus['configuration']>): string {
  if (state === 'waiting') return 'run check without --status: it tries the credentials that are waited for';
  if (reason === 'restart_required') return 'restart the pod, or take those changes back';
  return `mend the file: token-sidecar check --config ${plain(file)} --offline shows all that is wrong with it`;
}

function describeCredential(
  { name, tokens, expiresInSeconds, lastFailure, mountedCredentials }: SidecarStatus['credentials'][number],
  problems: readonly SidecarProblem[],
): Finding[] {
  const of = about(`credential ${plain(name)}`);
  if (problems.length > 0) {
    const failure = failureOf(mountedCredentials?.detail, lastFailure?.result);
    const remedy = 'run check without --status: it tries each step';
    return problems.map((problem) => describeProblem(problem, of, 'running_credential', remedy, failure));
  }
  const held =
    tokens === 'exchanged'
      ? 'the token of each request is exchanged'
      : expiresInSeconds === undefined
        ? 'a token is held'
        : `a token is held for ${duration(expiresInSeconds)} more`;
  return [of.ok('running_credential', held)];
}

function failureOf(unusable: string | undefined, result: string | undefined): Failure {
  if (unusable !== undefined) return 'configuration';
  return result === 'rejected' ? 'credentials_rejected' : 'provider_unavailable';
}

function describeRoute(
  { name, requests: { total, inFlight, errors } }: SidecarStatus['routes'][number],
  problems: readonly SidecarProblem[],
): Finding[] {
  if (problems.length > 0) return problems.map((problem) => describeTraffic(problem, name));
  const detail = `${total} request(s), ${inFlight} in flight, ${errors} answered with an error of the proxy`;
  return [about(`route ${plain(name)}`).ok('running_route', detail)];
}

function describeTraffic(problem: SidecarProblem, route: string): Finding {
  const remedy =
    'see token_sidecar_proxy_errors_total by code, and the log; token-sidecar explain CODE says what a code means';
  return describeProblem(problem, about(`route ${plain(route)}`), 'running_route', remedy);
}

const MAX_TEXT_LENGTH = 1000;

function plain(text: string): string {
  // The ellipsis marks masked text.
  return text.replace(/[^\x20-\x7e…]+/g, ' ').slice(0, MAX_TEXT_LENGTH);
}

/** `3 h 20 min`, in the two largest units. */
function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  const from = parts.findIndex(([number]) => number > 0);
  if (from === -1) return '0 s';
  return parts
    .slice(from, from + 2)
    .filter(([number]) => number > 0)
    .map(([number, unit]) => `${number} ${unit}`)
    .join(' ');
}

/** A status with hundreds of routes is smaller. */
const MAX_STATUS_BYTES = 4 * 1024 * 1024;
const WITHIN_MS = 5000;

const credentialSchema = v.object({
  name: v.string(),
  /** `exchanged` if none is held. */
  tokens: v.optional(v.string()),
  expiresInSeconds: v.optional(v.number()),
  lastFailure: v.optional(v.object({ result: v.string() })),
  mountedCredentials: v.optional(v.object({ detail: v.optional(v.string()) })),
});

const routeSchema = v.object({
  name: v.string(),
  requests: v.object({ total: v.number(), inFlight: v.number(), errors: v.number() }),
});

const problemSchema = v.object({
  level: v.picklist(['warning', 'failing']),
  about: v.optional(v.object({ kind: v.string(), name: v.string() })),
  what: v.string(),
  since: v.optional(v.string()),
  why: v.optional(v.string()),
  next: v.string(),
  nextAt: v.optional(v.string()),
  runbook: v.optional(v.pipe(v.string(), v.regex(/^\w{1,64}$/))),
});

const configurationSchema = v.object({
  file: v.string(),
  generation: v.number(),
  state: v.string(),
  reason: v.optional(v.string()),
  errors: v.optional(v.string()),
});

const statusSchema = v.object({
  version: v.string(),
  uptimeSeconds: v.number(),
  draining: v.boolean(),
  verdict: v.object({ problems: v.array(problemSchema) }),
  configuration: v.optional(configurationSchema),
  credentials: v.array(credentialSchema),
  routes: v.array(routeSchema),
});

type SidecarStatus = v.InferOutput<typeof statusSchema>;
/** Parts of a sentence: what fails, since when, what happens next. */
type SidecarProblem = v.InferOutput<typeof problemSchema>;

export async function askStatus(
  admin: ListenAddress,
  examination: Pick<CheckContext, 'clock' | 'signal'>,
): Promise<{ readonly status: SidecarStatus } | { readonly wrong: string }> {
  try {
    const text = await getText(admin, examination);
    const parsed = v.safeParse(statusSchema, JSON.parse(text));
    return parsed.success ? { status: parsed.output } : { wrong: 'what answers there is no sidecar' };
  } catch (error) {
    if (error instanceof SyntaxError) return { wrong: 'what answers there is no sidecar' };
    return { wrong: wordsFor(error) };
  }
}

function getText(
  { host, port }: ListenAddress,
  examination: Pick<CheckContext, 'clock' | 'signal'>,
): Promise<string> {
  const answered = Promise.withResolvers<string>();
  const request = http.get({ host, port, path: '/api/status', agent: false }, (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_STATUS_BYTES)
        request.destroy(new Error(`it answers more than ${MAX_STATUS_BYTES} bytes`));
      else chunks.push(chunk);
    });
    response.on('error', answered.reject);
    response.once('end', () => {
      if (response.statusCode === 200) answered.resolve(Buffer.concat(chunks).toString('utf8'));
      else answered.reject(new Error(`/api/status answered ${response.statusCode}`));
    });
  });
  request.on('error', answered.reject);
  return inTime(answered.promise, examination, WITHIN_MS, () => request.destroy());
}
