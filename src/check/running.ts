/** A sidecar that runs: what its admin listener says of it. */

import * as v from 'valibot';
import type { ListenAddress } from '../config/config.ts';
import { formatAddress } from '../config/values.ts';
import { messageOf, systemCodeOf } from '../errors.ts';
import { http } from '../node-http.ts';
import { VERSION } from '../version.ts';
import { type Examination, inTime, TooLate } from './examination.ts';
import { about, type Failure, type Finding } from './finding.ts';

/** A status of hundreds of routes is smaller. Bytes. */
const MOST_STATUS_BYTES = 4 * 1024 * 1024;
const WITHIN_MS = 5000;

const credentialSchema = v.object({
  name: v.string(),
  required: v.boolean(),
  ready: v.boolean(),
  tokens: v.optional(v.string()),
  expiresInSeconds: v.optional(v.number()),
  nextGrantAt: v.optional(v.string()),
  consecutiveFailures: v.number(),
  lastFailure: v.optional(v.object({ at: v.string(), result: v.string(), detail: v.string() })),
  mountedCredentials: v.optional(v.object({ detail: v.optional(v.string()) })),
});

const routeSchema = v.object({
  name: v.string(),
  requests: v.object({ total: v.number(), inFlight: v.number(), errors: v.number() }),
});

/** The part of `/api/status` that is judged here; there may be more. */
const statusSchema = v.object({
  version: v.string(),
  uptimeSeconds: v.number(),
  draining: v.boolean(),
  credentials: v.array(credentialSchema),
  routes: v.array(routeSchema),
});

type Status = v.InferOutput<typeof statusSchema>;
type CredentialStatus = Status['credentials'][number];

export async function askStatus(
  admin: ListenAddress,
  examination: Pick<Examination, 'clock' | 'signal'>,
): Promise<{ readonly status: Status } | { readonly wrong: string }> {
  try {
    const text = await getText(admin, examination);
    const parsed = v.safeParse(statusSchema, JSON.parse(text));
    return parsed.success ? { status: parsed.output } : { wrong: 'what answers there is no sidecar' };
  } catch (error) {
    if (error instanceof SyntaxError) return { wrong: 'what answers there is no sidecar' };
    return { wrong: error instanceof TooLate ? error.message : (systemCodeOf(error) ?? messageOf(error)) };
  }
}

function getText(
  { host, port }: ListenAddress,
  examination: Pick<Examination, 'clock' | 'signal'>,
): Promise<string> {
  const answered = Promise.withResolvers<string>();
  const request = http.get({ host, port, path: '/api/status', agent: false }, (response) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MOST_STATUS_BYTES)
        request.destroy(new Error(`it answers more than ${MOST_STATUS_BYTES} bytes`));
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

export async function examineRunning(
  admin: ListenAddress,
  examination: Pick<Examination, 'clock' | 'signal'>,
): Promise<Finding[]> {
  const of = about(`at ${formatAddress(admin)}`);
  const asked = await askStatus(admin, examination);
  if ('wrong' in asked) {
    const remedy = 'run it in the container of the sidecar, or name its admin listener by --admin-listen';
    return [of.failure('running_sidecar', 'provider_unavailable', asked.wrong, remedy)];
  }
  const { status } = asked;
  return [
    describeSidecar(status, admin),
    ...status.credentials.map((credential) => describeCredential(credential)),
    ...status.routes.map((route) => describeRoute(route)),
  ];
}

function describeSidecar({ version, uptimeSeconds, draining }: Status, admin: ListenAddress): Finding {
  const of = about(`at ${formatAddress(admin)}`);
  const detail = `version ${plain(version)}, up for ${duration(uptimeSeconds)}`;
  if (draining) {
    return of.warning(
      'running_sidecar',
      `${detail}, draining`,
      'it is being ended: look at the pod that replaces it',
    );
  }
  return version === VERSION
    ? of.ok('running_sidecar', detail)
    : of.warning(
        'running_sidecar',
        `${detail}; this program is ${VERSION}`,
        'restart the pod if it is to have this version',
      );
}

function describeCredential(credential: CredentialStatus): Finding {
  const {
    name,
    required,
    ready,
    tokens,
    expiresInSeconds,
    consecutiveFailures,
    lastFailure,
    mountedCredentials,
  } = credential;
  const of = about(`credential ${plain(name)}`, !required);
  const unusable = mountedCredentials?.detail;
  const last =
    lastFailure === undefined ? undefined : `${plain(lastFailure.result)}: ${plain(lastFailure.detail)}`;
  if (!ready) {
    const why = unusable === undefined ? (last ?? 'none has been obtained yet') : plain(unusable);
    const failure = failureOf(unusable, lastFailure?.result);
    return of.failure(
      'running_credential',
      failure,
      `no token: ${why}`,
      'run check without --status: it tries each step',
    );
  }
  const isExchanged = tokens === 'exchanged';
  const held = isExchanged
    ? 'the token of each request is exchanged'
    : expiresInSeconds === undefined
      ? 'a token is held'
      : `a token is held for ${duration(expiresInSeconds)} more`;
  if (unusable !== undefined) {
    const remedy = isExchanged
      ? 'mend the Secret: what was read before is in use until the next start'
      : 'mend the Secret before the token ends';
    return of.warning(
      'running_credential',
      `${held}; the mounted Secret cannot be used: ${plain(unusable)}`,
      remedy,
    );
  }
  if (consecutiveFailures > 0) {
    const detail = `${held}; ${consecutiveFailures} ${isExchanged ? 'exchange' : 'renewal'}(s) in a row have failed: ${last ?? 'unknown'}`;
    return of.warning('running_credential', detail, 'run check without --status: it tries each step');
  }
  return of.ok('running_credential', held);
}

function failureOf(unusable: string | undefined, result: string | undefined): Failure {
  if (unusable !== undefined) return 'configuration';
  return result === 'rejected' ? 'credentials_rejected' : 'provider_unavailable';
}

/** More of the requests than this ended in an error of the proxy. */
const MANY_ERRORS = 0.01;

function describeRoute({ name, requests: { total, inFlight, errors } }: Status['routes'][number]): Finding {
  const of = about(`route ${plain(name)}`);
  const detail = `${total} request(s), ${inFlight} in flight, ${errors} answered with an error of the proxy`;
  return errors > total * MANY_ERRORS
    ? of.warning(
        'running_route',
        detail,
        'see token_sidecar_proxy_errors_total by code, and the log; token-sidecar explain CODE says what a code means',
      )
    : of.ok('running_route', detail);
}

const LONGEST_TEXT = 300;

/** One line of what somebody else says. */
function plain(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, ' ').slice(0, LONGEST_TEXT);
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
