import * as v from 'valibot';
import { formatAddress, type ListenAddress } from '../platform/net/address.ts';
import { http } from '../platform/net/node-http.ts';
import { instantAndDistance, span } from '../platform/time/words.ts';
import { VERSION } from '../platform/version.ts';
import { sentenceOf } from '../token/condition.ts';
import { type About, about, type CheckContext, type Finding, inTime, wordsFor } from './check-context.ts';
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
  const nowMs = Date.parse(status.at);
  const told = (kind: Kind, name: string, step: StepName, otherwise: string) =>
    problems
      .filter((problem) => problem.about?.kind === kind && problem.about.name === name)
      .map((problem) => describeProblem(problem, nowMs, about(`${kind} ${plain(name)}`), step, otherwise));
  const names = new Set(status.routes.map(({ name }) => name));
  const ofOthers = problems.filter((problem) => kindOf(problem) === 'sidecar');
  // Hosts that are captured or of the forward proxy count as routes with other names.
  const hosts = problems.flatMap(({ about: subject }) =>
    subject?.kind === 'route' && !names.has(subject.name) ? [subject.name] : [],
  );
  return [
    describeVersion(status, of),
    ...ofOthers.map((problem) => describeProblem(problem, nowMs, of, 'running_sidecar', whatToDo(status))),
    ...describeConfiguration(status, of),
    ...status.credentials.flatMap((one) =>
      orElse(told('credential', one.name, 'running_credential', TRY_EACH), () => describeCredential(one)),
    ),
    ...status.routes.flatMap((one) =>
      orElse(told('route', one.name, 'running_route', LOOK), () => describeRoute(one)),
    ),
    ...hosts.flatMap((name) => told('route', name, 'running_route', LOOK)),
  ];
}

const TRY_EACH = 'run check without --status: it tries each step';
const LOOK = 'look at its log';

function orElse(problems: Finding[], well: () => Finding): Finding[] {
  return problems.length > 0 ? problems : [well()];
}

type Kind = 'credential' | 'route' | 'configuration' | 'sidecar';

/** A newer sidecar may have other kinds. */
function kindOf({ about: subject }: SidecarProblem): Kind {
  const known: readonly Kind[] = ['credential', 'route', 'configuration'];
  return known.find((kind) => kind === subject?.kind) ?? 'sidecar';
}

function describeProblem(
  problem: SidecarProblem,
  nowMs: number,
  of: About,
  step: StepName,
  otherwise: string,
): Finding {
  const { level, since, advice, next, nextAt, runbook, code = 'provider_unavailable' } = problem;
  const sinceMs = since === undefined ? undefined : Date.parse(since);
  const is = sentenceOf({ ...problem, sinceMs, advice: undefined }, nowMs);
  const at = nextAt === undefined ? '' : ` at ${instantAndDistance(Date.parse(nextAt), nowMs)}`;
  const detail = plain(next === undefined ? is : `${is}; ${next}${at}`);
  const remedy = plain(advice ?? otherwise);
  const todo = runbook === undefined ? remedy : `${remedy}; token-sidecar explain ${runbook}`;
  return level === 'failing' ? of.failure(step, code, detail, todo) : of.warning(step, detail, todo);
}

function whatToDo({ draining }: SidecarStatus): string {
  return draining ? 'it is being ended: look at the pod that replaces it' : LOOK;
}

function describeVersion({ version, uptimeSeconds }: SidecarStatus, of: About): Finding {
  const detail = `version ${plain(version)}, up for ${span(uptimeSeconds * 1000)}`;
  return version === VERSION
    ? of.ok('running_sidecar', detail)
    : of.warning(
        'running_sidecar',
        `${detail}; this program is ${VERSION}`,
        'restart the pod if it is to have this version',
      );
}

function describeConfiguration({ at, configuration, verdict }: SidecarStatus, of: About): Finding[] {
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
    const told = first === '' ? problem : { ...problem, reason: first };
    const remedy = remedyForFile(configuration);
    return describeProblem(told, Date.parse(at), of, 'running_configuration', remedy);
  });
}

function remedyForFile({ file, state, reason }: NonNullable<SidecarStatus['configuration']>): string {
  if (state === 'waiting') return 'run check without --status: it tries the credentials that are waited for';
  if (reason === 'restart_required') return 'restart the pod, or take those changes back';
  return `mend the file: token-sidecar check --config ${plain(file)} --offline shows all that is wrong with it`;
}

function describeCredential({
  name,
  tokens,
  expiresInSeconds,
}: SidecarStatus['credentials'][number]): Finding {
  const held =
    tokens === 'exchanged'
      ? 'the token of each request is exchanged'
      : expiresInSeconds === undefined
        ? 'a token is held'
        : `a token is held for ${span(expiresInSeconds * 1000)} more`;
  return about(`credential ${plain(name)}`).ok('running_credential', held);
}

function describeRoute({ name, state, credential, requests }: SidecarStatus['routes'][number]): Finding {
  const of = about(`route ${plain(name)}`);
  if (state === 'waits' || state === 'without_token') {
    const becomes = state === 'waits' ? 'it waits for' : 'requests pass without the token of';
    const detail = `${becomes} its credential ${plain(credential ?? '')}`;
    return of.warning('running_route', detail, 'see what is said of that credential');
  }
  const { total, inFlight, errors } = requests;
  const detail = `${total} request(s), ${inFlight} in flight, ${errors} answered with an error of the proxy`;
  return of.ok('running_route', detail);
}

const MAX_TEXT_LENGTH = 1000;

function plain(text: string): string {
  // The ellipsis marks masked text.
  return text.replace(/[^\x20-\x7e…]+/g, ' ').slice(0, MAX_TEXT_LENGTH);
}

/** A status with hundreds of routes is smaller. */
const MAX_STATUS_BYTES = 4 * 1024 * 1024;
const WITHIN_MS = 5000;

const credentialSchema = v.object({
  name: v.string(),
  /** `exchanged` if none is held. */
  tokens: v.optional(v.string()),
  expiresInSeconds: v.optional(v.number()),
});

const routeSchema = v.object({
  name: v.string(),
  state: v.optional(v.string()),
  credential: v.optional(v.string()),
  requests: v.object({ total: v.number(), inFlight: v.number(), errors: v.number() }),
});

const problemSchema = v.object({
  level: v.picklist(['warning', 'failing']),
  about: v.optional(v.object({ kind: v.string(), name: v.string() })),
  what: v.string(),
  since: v.optional(v.string()),
  reason: v.optional(v.string()),
  advice: v.optional(v.string()),
  code: v.optional(v.picklist(['configuration', 'credentials_rejected', 'provider_unavailable'])),
  next: v.optional(v.string()),
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
  at: v.string(),
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
