import type { Agent } from 'node:http';
import type { LookupFunction } from 'node:net';
import type { CredentialConfig } from '../../config/config.ts';
import { systemCodeOf } from '../../platform/errors.ts';
import { parseObject } from '../../platform/json-object.ts';
import { redactedUrl } from '../../platform/log/redacted-text.ts';
import { InvalidFile } from '../../platform/mounted/mounted-secret.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { CertificateMetrics } from '../../platform/x509/certificate-metrics.ts';
import { authenticateClient, certificateFile, repeatedParts } from '../client/client-authentication.ts';
import type { Credentials } from '../credentials.ts';
import { nonceIn, ProofMaker } from '../dpop/proof-maker.ts';
import type { EgressFailure } from '../egress/egress-tunnel.ts';
import {
  exchangesForRequests,
  type GrantMaterial,
  grantRequest,
  readMountedToken,
} from '../grants/grants.ts';
import { discovery, type IssuerMetadata, UndiscoveredProvider } from './discovery.ts';
import { providerConnections } from './provider-connections.ts';
import { readProviderError } from './provider-error.ts';
import {
  GarbledResponse,
  OverlongResponse,
  type ProviderResponse,
  StaleConnection,
  sendProviderRequest,
} from './provider-request.ts';
import {
  type EndpointResponse,
  type RefusedGrant,
  readTokenResponse,
  type TokenResponse,
} from './token-response.ts';

interface TokenRequest {
  /** The token to exchange. */
  readonly subject?: string;
  /** The token that an upstream has refused. */
  readonly refused?: string | undefined;
  /** See `ExpectedResponse`. */
  readonly ending?: string | undefined;
  readonly answered?: (status: number) => void;
}

export interface TokenEndpoint {
  /** Never rejects. Bounded by the credential's request timeout. */
  requestToken(credentials: Credentials, signal: AbortSignal, request?: TokenRequest): Promise<TokenResponse>;
  /** Undefined until the issuer has named one. */
  tokenUrl(): string | undefined;
  metadata(): IssuerMetadata | undefined;
  /** Absent where tokens are bound to no key. */
  readonly proofs?: Pick<ProofMaker, 'report'> | undefined;
  close(): Promise<void>;
}

/** The class is loaded only if used. */
const EGRESS_FAILURE: EgressFailure['name'] = 'EgressFailure';

/** Connections, if requests bring tokens. Waiting for one counts towards the timeout. */
export const CONNECTIONS_FOR_REQUESTS = 8;

const TIMED_OUT = Symbol('the request timeout has passed');

/**
 * @param lookup resolves the provider's name; the system's by default.
 * @param onAnswer called with each answer before it is judged.
 */
export function createTokenEndpoint(
  config: CredentialConfig,
  clock: Clock,
  lookup?: LookupFunction,
  onAnswer?: (answer: EndpointResponse) => void,
  certificates?: CertificateMetrics,
): TokenEndpoint {
  const most = exchangesForRequests(config) ? CONNECTIONS_FOR_REQUESTS : 1;
  const connections = providerConnections(config, clock, lookup, most, certificates);
  const proofs = config.dpop === undefined ? undefined : new ProofMaker(clock);
  const closing = new AbortController();
  const issuer =
    config.issuerUrl === undefined
      ? undefined
      : discovery(
          {
            issuerUrl: config.issuerUrl,
            showsCertificate: certificateFile(config.clientAuth) !== undefined,
            permitsClearText: config.permitsClearText === true,
          },
          clock,
        );

  async function send(
    request: Parameters<typeof sendProviderRequest>[0],
    signal: AbortSignal,
  ): Promise<ProviderResponse & EndpointResponse> {
    const requestedAtMs = clock.now().wallMs;
    const answer = await sendProviderRequest(request, signal);
    const received = { ...answer, requestedAtMs, receivedAtMs: clock.now().wallMs };
    onAnswer?.(received);
    return received;
  }

  function agentFor(url: URL, credentials: Credentials): Promise<Agent> {
    return connections.with(credentials, url.protocol === 'http:' ? 'http:' : 'https:');
  }

  async function findTokenUrl(credentials: Credentials, signal: AbortSignal): Promise<string> {
    if (issuer === undefined) return config.tokenUrl as string;
    const { tokenUrl } = await issuer.metadata(async (url) =>
      send({ url, agent: await agentFor(url, credentials) }, signal),
    );
    return tokenUrl;
  }

  /**
   * @param nonce that an answer has demanded.
   * @throws {NonceDemanded} only without it.
   */
  async function post(
    credentials: Credentials,
    signal: AbortSignal,
    { subject, refused, ending, answered }: TokenRequest,
    nonce: string | undefined,
  ): Promise<TokenResponse> {
    const tokenUrl = await findTokenUrl(credentials, signal);
    const url = new URL(tokenUrl);
    const agent = await agentFor(url, credentials);
    const proof = await authenticateClient(credentials, tokenUrl, clock);
    const occasion = { proof, tokenUrl, nowMs: clock.now().wallMs, subject, refused };
    const { translate, ...asked } = await grantRequest(config, credentials.material, occasion);
    const key = proofs?.keyOf(credentials.proofKey);
    const proved = { method: 'POST', origin: url.origin, path: url.pathname };
    const dpop = key && proofs?.prove(key, proved, nonce);
    const received = await send({ url, agent, dpop, ...asked }, signal);
    answered?.(received.status);
    if (proofs !== undefined) takeAnswer(proofs, url.origin, received, nonce);
    const expected = {
      defaultLifetimeMs: config.renewal.defaultLifetimeMs,
      zeroIsEndless: config.renewal.zeroLifetime === 'endless',
      ending,
      tokenType: config.tokenType,
      dpop:
        proofs && key && config.dpop
          ? { ...config.dpop, bind: (token: string) => proofs.bind(token, key) }
          : undefined,
      translate,
    };
    const confidential = [...confidentialParts(credentials), ...valuesIn(url)];
    const mayNotBeShown = subject === undefined ? confidential : [...confidential, subject];
    return readTokenResponse(received, expected, mayNotBeShown);
  }

  /** Each makes a new assertion, since one must not be used twice (RFC 7523 §3, `jti`). */
  async function postAgainIfNeedBe(
    credentials: Credentials,
    signal: AbortSignal,
    request: TokenRequest,
  ): Promise<TokenResponse> {
    let nonce: string | undefined;
    let mayBeStale = true;
    for (;;) {
      try {
        return await post(credentials, signal, request, nonce);
      } catch (error) {
        if (error instanceof NonceDemanded) nonce = error.nonce;
        else if (error instanceof StaleConnection && mayBeStale) mayBeStale = false;
        else throw error;
      }
    }
  }

  return {
    async requestToken(credentials, signal, request = {}) {
      if (credentials.material?.grant === 'static') {
        return readMountedToken(credentials.material, clock.now().wallMs);
      }
      const timeout = new AbortController();
      const cancelTimeout = clock.after(config.requestTimeoutMs, () => timeout.abort(TIMED_OUT));
      try {
        const givenUp = AbortSignal.any([timeout.signal, signal, closing.signal]);
        const outcome = await postAgainIfNeedBe(credentials, givenUp, request);
        if (outcome.result === 'unavailable' || outcome.result === 'invalid_response') issuer?.doubt();
        return outcome;
      } catch (error) {
        issuer?.doubt();
        return describeFailure(error, config.requestTimeoutMs);
      } finally {
        cancelTimeout();
      }
    },
    tokenUrl() {
      const url = config.tokenUrl ?? issuer?.known()?.tokenUrl;
      return url === undefined ? undefined : redactedUrl(url);
    },
    metadata: () => issuer?.known(),
    proofs,
    async close() {
      closing.abort();
      connections.close();
    },
  };
}

/** The authorization server wants its nonce in the proof (RFC 9449 §8), and has given one. */
class NonceDemanded extends Error {
  readonly nonce: string;

  constructor(nonce: string) {
    super('use_dpop_nonce');
    this.nonce = nonce;
  }
}

/**
 * Keeps the provider's time and nonce. A demanded nonce may be good only once, so only the repeated request has it.
 * @param nonce of the request, if it was demanded.
 * @throws {NonceDemanded}
 */
function takeAnswer(
  proofs: ProofMaker,
  origin: string,
  answer: ProviderResponse & EndpointResponse,
  nonce: string | undefined,
): void {
  const fields = parseObject(answer.body);
  // A front's page has the front's time.
  if (fields !== undefined) proofs.dated(answer);
  const given = nonceIn(answer.dpopNonce);
  if (given !== undefined && nonce === undefined && readProviderError(fields)?.code === 'use_dpop_nonce') {
    proofs.told('nonce_wanted');
    throw new NonceDemanded(given);
  }
  const last = given ?? nonce;
  if (last !== undefined) proofs.nonceGiven(origin, last);
}

/** Characters. Where shorter ones were withheld would be seen. */
const MIN_WITHHELD_LENGTH = 3;

/** As written and decoded. */
function valuesIn({ search }: URL): readonly string[] {
  const written = search.slice(1).split('&');
  const values = written.flatMap((part) => {
    const [name] = new URLSearchParams(part).keys();
    // A name alone may be the value.
    const value = part.slice(part.indexOf('=') + 1);
    return name === 'grant_type' ? [] : [value, ...new URLSearchParams(`value=${value}`).values()];
  });
  return values.filter(({ length }) => length >= MIN_WITHHELD_LENGTH);
}

/** Assertions and keys are withheld by their length instead. */
function confidentialParts(credentials: Credentials): readonly string[] {
  const { material } = credentials;
  return [...repeatedParts(credentials), ...(material === undefined ? [] : namesIn(material))];
}

function namesIn(material: GrantMaterial): readonly string[] {
  switch (material.grant) {
    case 'rfc7523':
    case 'github_app':
      return [material.issuer];
    case 'google_service_account':
      return [material.email];
    case 'static':
      return [material.token];
  }
}

function describeFailure(error: unknown, timeoutMs: number): RefusedGrant {
  if (error === TIMED_OUT)
    return { result: 'unavailable', detail: `no whole answer within ${timeoutMs / 1000} s` };
  if (error instanceof UndiscoveredProvider) return { result: error.result, detail: error.message };
  if (error instanceof OverlongResponse || error instanceof GarbledResponse)
    return { result: 'invalid_response', detail: error.message };
  if (error instanceof Error && error.name === EGRESS_FAILURE)
    return { result: 'unavailable', detail: error.message };
  const code = systemCodeOf(error);
  if (code?.startsWith('HPE_')) {
    return { result: 'invalid_response', detail: `not an HTTP answer (${code})` };
  }
  // A library's message may quote its input; its code cannot.
  return {
    result: 'unavailable',
    detail: code ?? (error instanceof InvalidFile ? error.message : 'unknown error'),
  };
}
