import type { AuthenticationResult, Caller, CertificateCaller } from '../callers/caller.ts';
import type { ServiceAccountVerifier } from '../callers/service-account-verifier.ts';
import type { CallerMatch, GatewayCaller, RouteConfig } from '../config/config.ts';
import { type ProxyErrorCode, SidecarError } from '../platform/errors.ts';
import type { Logger } from '../platform/log/logger.ts';
import { type Clock, hasPassed } from '../platform/time/clock.ts';
import type { Fields } from '../proxy/http/fields.ts';
import { MadeOf } from '../proxy/http/lasting-fields.ts';
import type { IncomingRequest } from '../proxy/streams/contract.ts';
import {
  type AdmittedCaller,
  type Authorizer,
  CallerHeldBack,
  type IdentifiedCaller,
} from '../proxy/transaction/authorizer.ts';
import type { CallerBounds } from './caller-bounds.ts';
import type { Peer } from './client-certificate.ts';
import type { Decision, GatewayMetrics } from './metrics.ts';

/** What the gates of all connections share. */
export interface CallerGateOptions {
  readonly bounds: CallerBounds;
  readonly metrics: Pick<GatewayMetrics, 'decided' | 'began' | 'ended'>;
  /** Judges service account tokens; if absent, tokens are ignored. */
  readonly tokens: Pick<ServiceAccountVerifier, 'verify'> | undefined;
  /** Whether all authorities with these fingerprints are trusted now. */
  readonly trusts: (fingerprints: readonly string[]) => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A connection after its handshake. */
interface SecuredConnection {
  readonly peer: Peer;
  /** The other end's address, if the system knows it. */
  readonly address: string | undefined;
  /** Reports that its caller is known. */
  readonly known: () => void;
  /** Ends it after its present requests: its certificate can no longer prove anything. */
  readonly retire: () => void;
}

const NO_TOKEN = { kind: 'none' } as const;

/** How each refusal is counted. */
const DECISIONS: Readonly<Partial<Record<ProxyErrorCode, Decision>>> = {
  caller_unknown: 'unknown',
  caller_ambiguous: 'ambiguous',
  caller_not_allowed: 'not_allowed',
  caller_unverified: 'unverified',
  too_many_requests: 'held_back',
};

/** Whom a connection counts for. */
interface CountedCaller {
  readonly key: string;
  readonly name: string;
}

/** Decides who may enter through one connection. Each refusal is logged, within a limit on repeats. */
export class CallerAuthorizer implements Authorizer {
  readonly #options: CallerGateOptions;
  readonly #connection: SecuredConnection;
  /** The caller it counts for: the first that was admitted. */
  #countedFor: CountedCaller | undefined;
  #closed = false;

  constructor(options: CallerGateOptions, connection: SecuredConnection) {
    this.#options = options;
    this.#connection = connection;
  }

  get countedFor(): CountedCaller | undefined {
    return this.#countedFor;
  }

  withoutCredentials(request: IncomingRequest): IncomingRequest {
    return withoutCredentials(request);
  }

  identify(request: IncomingRequest): IdentifiedCaller | Promise<IdentifiedCaller> {
    try {
      const certified = this.#byCertificate();
      const shown = this.#options.tokens === undefined ? NO_TOKEN : shownToken(request);
      switch (shown.kind) {
        case 'none':
          if (certified === undefined) throw unknown(this.#whatIsMissing());
          return this.#identified(certified);
        case 'token':
          return this.#byToken(shown.token, certified);
        case 'malformed':
          throw unknown(`the request ${shown.why}`);
        case 'ambiguous':
          throw new SidecarError('caller_ambiguous', `the request ${shown.why}`);
      }
    } catch (error) {
      throw this.#refused(error, {});
    }
  }

  /** The connection has closed. */
  closed(): void {
    this.#closed = true;
    if (this.#countedFor !== undefined) this.#options.bounds.connectionClosed(this.#countedFor.key);
    this.#countedFor = undefined;
  }

  async #byToken(token: string, certified: Caller | undefined): Promise<IdentifiedCaller> {
    try {
      const caller = await this.#judge(token);
      if (certified !== undefined && !isSame(certified, caller)) {
        throw new SidecarError(
          'caller_ambiguous',
          'client certificate and service account token are of two callers',
        );
      }
      return this.#identified(certified ?? caller);
    } catch (error) {
      throw this.#refused(error, {});
    }
  }

  async #judge(token: string): Promise<Caller> {
    const { tokens } = this.#options;
    if (tokens === undefined) throw new SidecarError('internal', 'a token, and nobody who judges it');
    return judged(await tokens.verify(token, this.#connection.address ?? ''));
  }

  #whatIsMissing(): string {
    return this.#options.tokens === undefined
      ? 'no client certificate came with the connection'
      : 'neither a client certificate nor a service account token is shown';
  }

  /** For each request: meanwhile the certificate may expire, or its authority be removed. */
  #byCertificate(): Caller | undefined {
    const { peer } = this.#connection;
    const { clock, trusts } = this.#options;
    if (peer.kind === 'unnamed') return undefined;
    if (peer.kind === 'refused') throw unknown(`the client certificate ${peer.why}`);
    if (hasPassed(peer.endsAt, clock.now())) {
      this.#connection.retire();
      throw unknown('the client certificate, or one above it, has ended since the connection was made');
    }
    if (!trusts(peer.authorities)) {
      this.#connection.retire();
      throw unknown('the authority of the client certificate is not trusted any more');
    }
    return peer.caller;
  }

  #identified(caller: Caller): IdentifiedCaller {
    const name = nameOf(caller);
    return {
      name,
      enter: (policy) => {
        const entry = policy.find(({ match }) => matches(match, caller));
        try {
          if (entry === undefined) throw notAllowed('no entry of the policy is for the caller');
          return this.#enter(caller, entry);
        } catch (error) {
          throw this.#refused(error, { caller: name, entry: entry?.name });
        }
      },
    };
  }

  #enter(caller: Caller, entry: GatewayCaller): AdmittedCaller {
    const { bounds, metrics } = this.#options;
    const key = keyOf(caller);
    const isFirst = this.#countedFor === undefined && !this.#closed;
    const end = bounds.begin(key, entry.limits, isFirst);
    if (isFirst) {
      this.#countedFor = { key, name: nameOf(caller) };
      this.#connection.known();
    }
    metrics.began(entry.name);
    return {
      key,
      assertMayUse: (route) => this.#assertMayUse(nameOf(caller), entry, route),
      brokeOff: () => bounds.brokenOff(key),
      leave: () => {
        metrics.ended(entry.name);
        end();
      },
    };
  }

  #assertMayUse(caller: string, entry: GatewayCaller, route: RouteConfig): void {
    if (entry.routes.includes(route.name)) {
      this.#options.metrics.decided(entry.name, 'allowed');
      return;
    }
    const error = notAllowed(`the entry ${entry.name} of the policy does not list route ${route.name}`);
    throw this.#refused(error, { caller, entry: entry.name, route: route.name });
  }

  /** @returns the error. */
  #refused(error: unknown, who: { caller?: string; entry?: string | undefined; route?: string }): unknown {
    const decision = error instanceof SidecarError ? DECISIONS[error.code as ProxyErrorCode] : undefined;
    if (!(error instanceof SidecarError) || decision === undefined) return error;
    const { metrics, log } = this.#options;
    metrics.decided(who.entry, decision);
    log.warn(
      { ...who, address: this.#connection.address, error: error.code, reason: error.message },
      'caller refused',
    );
    return error;
  }
}

function judged(verdict: AuthenticationResult): Caller {
  switch (verdict.kind) {
    case 'accepted':
      return verdict.caller;
    case 'refused':
      throw unknown(`the service account token is refused: ${verdict.reason}`);
    case 'unavailable':
      throw new CallerHeldBack(
        'caller_unverified',
        'the cluster cannot tell now whether the service account token is good',
        verdict.retryAfterMs,
      );
  }
}

/** Compares a SPIFFE id in the form of SPIRE and Istio. */
function isSame(certified: Caller, shown: Caller): boolean {
  if (certified.kind !== 'spiffe' || shown.kind !== 'service_account') return false;
  const path = /^spiffe:\/\/[^/]+(\/.*)$/.exec(certified.uri)?.[1];
  return path === `/ns/${shown.namespace}/sa/${shown.serviceAccount}`;
}

function unknown(why: string): SidecarError<'caller_unknown'> {
  return new SidecarError('caller_unknown', why);
}

function notAllowed(why: string): SidecarError<'caller_not_allowed'> {
  return new SidecarError('caller_not_allowed', why);
}

// Only the two documented patterns exist, and only DNS names ignore case.

export function matches(match: CallerMatch, caller: Caller): boolean {
  switch (match.kind) {
    case 'service_account':
      return (
        caller.kind === 'service_account' &&
        caller.namespace === match.namespace &&
        (match.serviceAccount === '*' || caller.serviceAccount === match.serviceAccount)
      );
    case 'spiffe':
      return caller.kind === 'spiffe' && matchesUri(match.uri, caller.uri);
    case 'certificate':
      return caller.kind === 'certificate' && hasName(caller, match.name);
  }
}

function hasName({ by, names }: CertificateCaller, name: string): boolean {
  return names.includes(by === 'dns_names' ? name.toLowerCase() : name);
}

function matchesUri(pattern: string, uri: string): boolean {
  return pattern.endsWith('/*') ? uri.startsWith(pattern.slice(0, -1)) : uri === pattern;
}

/** Distinct among callers of its kind. */
function nameOf(caller: Caller): string {
  switch (caller.kind) {
    case 'service_account':
      return `${caller.namespace}/${caller.serviceAccount}`;
    case 'spiffe':
      return caller.uri;
    case 'certificate':
      return caller.names.join(',');
  }
}

/** Distinct from every other caller: a common name is arbitrary text. */
export function keyOf(caller: Caller): string {
  const kind = caller.kind === 'certificate' ? caller.by : caller.kind;
  return `${kind}:${nameOf(caller)}`;
}

/** For callers whose libraries reserve Proxy-Authorization. */
const CALLER_FIELD = 'token-sidecar-caller';

const PROXY_AUTHORIZATION_FIELD = 'proxy-authorization';

/** Servers that make variables of names (CGI, WSGI) take these for the fields above. */
const ALIKE = /^(?:token[-_]sidecar[-_]caller|proxy[-_]authorization)$/i;

/** RFC 6750 §2.1; the scheme in any case (RFC 9110 §11.1). */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

type ShownToken =
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string }
  /** @property why completes "the request …". */
  | { readonly kind: 'malformed'; readonly why: string }
  | { readonly kind: 'ambiguous'; readonly why: string };

/** Several fields are never trusted, even if they are equal. */
function shownToken({ fields }: Pick<IncomingRequest, 'fields'>): ShownToken {
  let shown: ShownToken = { kind: 'none' };
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] as string).toLowerCase();
    if (!isCredentialField(name)) continue;
    if (name.includes('_')) return { kind: 'ambiguous', why: 'names its caller in a field with _ for -' };
    if (shown.kind !== 'none') return { kind: 'ambiguous', why: 'shows more than one token of its caller' };
    shown = tokenOf(name, fields[at + 1] as string);
  }
  return shown;
}

function tokenOf(name: string, value: string): ShownToken {
  const isOwn = name === CALLER_FIELD;
  const token = isOwn ? TOKEN.exec(value)?.[0] : BEARER.exec(value)?.[1];
  if (token !== undefined) return { kind: 'token', token };
  const expected = isOwn ? 'a token alone' : 'Bearer and a token';
  return { kind: 'malformed', why: `has a field ${name} that is not ${expected}` };
}

const WITHOUT = new MadeOf<Fields>();

/** Or may be taken for one. */
function isCredentialField(name: string): boolean {
  return (
    (name.length === CALLER_FIELD.length || name.length === PROXY_AUTHORIZATION_FIELD.length) &&
    ALIKE.test(name)
  );
}

export function withoutCredentials(request: IncomingRequest): IncomingRequest {
  const { fields } = request;
  const known = WITHOUT.get(fields);
  if (known !== undefined) return { ...request, fields: known };
  if (!hasCredentials(fields)) return request;
  const left: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (!isCredentialField(name)) left.push(name, fields[at + 1] as string);
  }
  WITHOUT.keep(fields, left, left);
  return { ...request, fields: left };
}

function hasCredentials(fields: readonly string[]): boolean {
  for (let at = 0; at < fields.length; at += 2) if (isCredentialField(fields[at] as string)) return true;
  return false;
}
