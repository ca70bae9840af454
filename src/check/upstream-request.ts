import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ForwardingPolicy, Injection, Upstream } from '../config/config.ts';
import { http } from '../platform/net/node-http.ts';
import { VERSION } from '../platform/version.ts';
import type { BoundToken } from '../token/bearer-source.ts';
import { RequestProof } from '../token/dpop/request-proof.ts';
import { connectionRemedy } from '../token/why-no-token.ts';
import {
  type About,
  type CheckContext,
  type Destination,
  type Finding,
  inTime,
  wordsFor,
} from './check-context.ts';
import { openStream, proxyOnTheWay, secure } from './connection.ts';

interface ProbedUpstream {
  readonly to: Destination;
  readonly policy: ForwardingPolicy;
  readonly upstream: Upstream;
  readonly path: string;
  readonly token: ExaminedToken | undefined;
}

/** A token, or one that needs a proof with each request. */
export type ExaminedToken = string | BoundToken;

interface Answer extends AnswerHead {
  /** RFC 6750 §3.1 */
  readonly error: string | undefined;
}

interface AnswerHead {
  readonly status: number;
  readonly challenges: readonly string[];
  /** RFC 9449 §9. */
  readonly nonces: readonly string[];
}

type Fields = Readonly<Record<string, string>>;

/** However long the route would wait. */
const MAX_ANSWER_MS = 15_000;

export async function checkRequests(
  probed: ProbedUpstream,
  of: About,
  examination: CheckContext,
): Promise<Finding[]> {
  const { upstream, path, token } = probed;
  const shown = `GET ${upstream.protocol}://${upstream.authority}${upstream.basePath}${path.replace(/\?.*$/s, '?…')}`;
  try {
    const without = await ask(probed, NOTHING, examination);
    const findings = [judgeWithout(without, shown, of)];
    if (token === undefined) return findings;
    return [...findings, judgeWith(await askWith(probed, token, examination), token, shown, of)];
  } catch (error) {
    const why = wordsFor(error);
    const remedy = connectionRemedy(why) ?? "look at the upstream's log";
    return [of.failure('upstream_request', 'provider_unavailable', `${shown}: ${why}`, remedy)];
  }
}

const PROOF_REMEDY =
  'compare the clocks of both, and the URL by which the upstream knows itself with that of this request: the proof names it';

const NONCE_REMEDY =
  'see whether its 401 has one field DPoP-Nonce, and whether it takes the next request with that nonce';

const DPOP_SCHEME = /(?:^|,)\s*DPoP(?:\s|,|$)/i;

function judgeWithout({ status }: Answer, shown: string, of: About): Finding {
  const detail = `${shown} without a token: ${status}`;
  return status >= 200 && status < 300
    ? of.warning(
        'upstream_request',
        `${detail}: it wants none here`,
        'make sure that the upstream checks tokens, or give a path for which it does',
      )
    : of.ok('upstream_request', detail);
}

function judgeWith(
  { status, error, challenges }: Answer,
  token: ExaminedToken,
  shown: string,
  of: About,
): Finding {
  const detail = `${shown} with the token: ${status}${error === undefined ? '' : ` ${error}`}`;
  if (error === 'invalid_dpop_proof' || error === 'use_dpop_nonce') {
    const remedy = error === 'invalid_dpop_proof' ? PROOF_REMEDY : NONCE_REMEDY;
    return of.failure('upstream_request', 'credentials_rejected', detail, remedy);
  }
  if (status === 401) {
    const isUnknown = typeof token === 'object' && !challenges.some((one) => DPOP_SCHEME.test(one));
    const remedy = isUnknown
      ? 'make sure that the upstream takes DPoP-bound tokens: its WWW-Authenticate has no scheme DPoP'
      : 'compare audience, scope and issuer of the token with what the upstream wants, and the clocks of both';
    return of.failure('upstream_request', 'credentials_rejected', detail, remedy);
  }
  if (status === 403) {
    return of.warning('upstream_request', detail, 'give the client the scope or role that the path wants');
  }
  if (status >= 500) return of.warning('upstream_request', detail, "look at the upstream's log");
  return of.ok('upstream_request', detail);
}

/** A bound token may be asked for again, with the nonce that the upstream gave. */
async function askWith(
  probed: ProbedUpstream,
  token: ExaminedToken,
  examination: CheckContext,
): Promise<Answer> {
  const { policy, upstream, path } = probed;
  if (typeof token === 'string') return ask(probed, injected(policy.inject, token), examination);
  const proof = new RequestProof(upstream);
  const proved = (): Injected => {
    const dpop = proof.make(token, 'GET', `${upstream.basePath}${path}`);
    return { fields: { authorization: token.value, dpop }, query: undefined };
  };
  const answer = await ask(probed, proved(), examination);
  const isRepeated = proof.judge(token, answer, true) === 'nonce_wanted';
  return isRepeated ? ask(probed, proved(), examination) : answer;
}

async function ask(
  { to, policy, upstream, path }: ProbedUpstream,
  { fields, query }: Injected,
  examination: CheckContext,
): Promise<Answer> {
  const withinMs = Math.min(MAX_ANSWER_MS, policy.timeouts.responseMs);
  const { socket, alpnProtocol, close } = await openConnection(to, examination);
  const asked = {
    authority: upstream.authority,
    target: withQuery(`${upstream.basePath}${path}`, query),
    fields: { 'user-agent': `token-sidecar/${VERSION}`, accept: '*/*', ...fields },
  };
  const isHttp2 = policy.protocol === 'h2c' || alpnProtocol === 'h2';
  try {
    const answer = isHttp2 ? askByHttp2(socket, asked, upstream) : askByHttp1(socket, asked);
    const head = await inTime(answer, examination, withinMs, close);
    return { ...head, error: challengeIn(head.challenges) };
  } finally {
    close();
  }
}

interface Asked {
  readonly authority: string;
  readonly target: string;
  readonly fields: Fields;
}

interface Injected {
  readonly fields: Fields;
  readonly query: string | undefined;
}

const NOTHING: Injected = { fields: {}, query: undefined };

/** A placeholder is assumed to be its whole field. */
function injected(inject: readonly Injection[] | undefined, token: string): Injected {
  if (inject === undefined) return { fields: { authorization: `Bearer ${token}` }, query: undefined };
  const parameters: string[] = [];
  const fields: Record<string, string> = {};
  for (const place of inject) {
    if (place.into === 'query') {
      parameters.push(`${encodeURIComponent(place.parameter)}=${encodeURIComponent(token)}`);
      continue;
    }
    const name = place.header.toLowerCase();
    const usual = name === 'authorization' ? 'Bearer' : undefined;
    const scheme = place.into === 'header' ? place.scheme : usual;
    fields[name] = scheme === undefined ? token : `${scheme} ${token}`;
  }
  return { fields, query: parameters.length === 0 ? undefined : parameters.join('&') };
}

function withQuery(target: string, query: string | undefined): string {
  return query === undefined ? target : `${target}${target.includes('?') ? '&' : '?'}${query}`;
}

interface Connection {
  readonly socket: Socket;
  /** Undefined without TLS. */
  readonly alpnProtocol: string | undefined;
  close(): void;
}

/** It may carry a token, so certificates are judged. */
async function openConnection(to: Destination, examination: CheckContext): Promise<Connection> {
  const stream = await openStream(to, await proxyOnTheWay(to), examination);
  if (to.protocol === 'http') {
    return { socket: stream, alpnProtocol: undefined, close: () => stream.destroy() };
  }
  try {
    const socket = await secure(to, stream, 'the trusted', examination);
    const close = () => {
      socket.destroy();
      stream.destroy();
    };
    return { socket, alpnProtocol: socket.alpnProtocol || undefined, close };
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

function askByHttp1(socket: Socket, { authority, target, fields }: Asked): Promise<AnswerHead> {
  return new Promise((resolve, reject) => {
    const request = http.request({
      createConnection: () => socket,
      method: 'GET',
      path: target,
      headers: { host: authority, connection: 'close', ...fields },
      insecureHTTPParser: false,
    });
    request.once('response', (response: IncomingMessage) => {
      response.on('error', () => undefined);
      const { statusCode = 0, headers } = response;
      resolve(headOf(statusCode, headers['www-authenticate'], headers['dpop-nonce']));
    });
    request.on('error', reject);
    request.end();
  });
}

async function askByHttp2(
  socket: Socket,
  { authority, target, fields }: Asked,
  { protocol }: Upstream,
): Promise<AnswerHead> {
  const http2 = process.getBuiltinModule('node:http2');
  const session = http2.connect(`${protocol}://${authority}`, { createConnection: () => socket });
  try {
    return await new Promise((resolve, reject) => {
      session.on('error', reject);
      const stream = session.request({ ':method': 'GET', ':path': target, ...fields }, { endStream: true });
      stream.on('error', reject);
      stream.once('response', (headers) => {
        resolve(headOf(Number(headers[':status']), headers['www-authenticate'], headers['dpop-nonce']));
      });
    });
  } finally {
    session.destroy();
  }
}

type Field = string | string[] | undefined;

function headOf(status: number, challenge: Field, nonce: Field): AnswerHead {
  return { status, challenges: [challenge ?? []].flat(), nonces: [nonce ?? []].flat() };
}

/** Its description may repeat the token. */
function challengeIn(challenges: readonly string[]): string | undefined {
  return /\berror="?([a-z_]{1,40})\b/.exec(challenges.join(', '))?.[1];
}
