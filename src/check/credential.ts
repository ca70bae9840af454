/** Follows a credential from its files to its token. */

import { join } from 'node:path';
import type { CredentialConfig } from '../config/config.ts';
import { serverOf } from '../config/values.ts';
import { redactedUrl } from '../platform/log/redacted-text.ts';
import {
  certificateFile,
  clientCertificate,
  publishedNames,
  sharedSecret,
  signingKey,
} from '../token/client/client-authentication.ts';
import { type Credentials, readCredentials } from '../token/credentials.ts';
import { exchangesForRequests } from '../token/grants/grants.ts';
import type { IssuerMetadata } from '../token/provider/discovery.ts';
import { createTokenEndpoint } from '../token/provider/token-endpoint.ts';
import type { EndpointResponse, TokenResponse } from '../token/provider/token-response.ts';
import { whyNoToken } from '../token/why-no-token.ts';
import { checkCertificateFiles } from './certificates.ts';
import { type About, about, type CheckContext, type Finding } from './check-context.ts';
import { mistakeInUrl, mistakeOf, refusalIn } from './mistakes.ts';
import { checkMountedFiles, checkTokenFile } from './mounted-files.ts';
import { reach } from './reach.ts';
import { describeClock, describeToken, skewOf } from './token-facts.ts';
import type { ExaminedToken } from './upstream-request.ts';

interface ExaminedCredential {
  readonly findings: readonly Finding[];
  /** Only in memory. */
  readonly token: ExaminedToken | undefined;
}

export async function checkCredential(
  config: CredentialConfig,
  examination: CheckContext,
): Promise<ExaminedCredential> {
  const of = about(`credential ${config.name}`, config.required === false);
  const findings = await checkMountedFiles(config, of);
  const ended: ExaminedCredential = { findings, token: undefined };
  const nowMs = examination.clock.now().wallMs;
  findings.push(
    ...(await checkCertificateFiles(config.tls, certificateOf(config), 'certificate_files', of, nowMs)),
  );
  const secret = await readCredentials(config);
  // A problem between files, such as a key that does not belong to its certificate.
  if (secret.state !== 'loaded' && !findings.some((finding) => 'failure' in finding)) {
    findings.push(of.failure('mounted_secret', 'configuration', secret.detail, 'mend the Secret'));
  }
  findings.push(...(await checkTokenFile(config, about(`credential ${config.name}`))));
  if (examination.isOffline) findings.push(...describeUrl(config, config.tokenUrl, of));
  if (secret.state !== 'loaded' || examination.isOffline) return ended;
  const asked = config.tokenUrl ?? config.issuerUrl;
  if (asked !== undefined) {
    const way = await reachProvider(config, new URL(asked), secret.credentials, of, examination);
    findings.push(...way.findings);
    if (!way.isReached) return ended;
  }
  const { token, findings: ofToken } = await requestToken(config, secret.credentials, of, examination);
  return { findings: [...findings, ...ofToken], token };
}

function certificateOf({ clientAuth, directory }: CredentialConfig): string | undefined {
  const file = certificateFile(clientAuth);
  return file === undefined ? undefined : join(directory, file);
}

/** No provider has issued it. */
const MADE_UP_TOKEN = 'made-up-by-token-sidecar-check';

const PROVIDER_STEPS = {
  name: 'provider_name',
  connection: 'provider_connection',
  tls: 'provider_tls',
} as const;

function reachProvider(
  { tls, egressProxy, requestTimeoutMs }: CredentialConfig,
  url: URL,
  credentials: Credentials,
  of: About,
  examination: CheckContext,
) {
  const identity = clientCertificate(credentials);
  return reach(
    {
      ...serverOf(url),
      tls,
      offers: ['http/1.1'],
      withinMs: requestTimeoutMs,
      ...(identity === undefined ? {} : { identity }),
      ...(egressProxy === undefined ? {} : { egressProxy }),
      ...(examination.lookup === undefined ? {} : { lookup: examination.lookup }),
    },
    PROVIDER_STEPS,
    of,
    examination,
  );
}

async function requestToken(
  config: CredentialConfig,
  credentials: Credentials,
  of: About,
  { clock, signal, lookup }: CheckContext,
): Promise<ExaminedCredential> {
  let answer: EndpointResponse | undefined;
  const endpoint = createTokenEndpoint(config, clock, lookup, (received) => {
    answer = received;
  });
  const exchanges = exchangesForRequests(config);
  const outcome = await endpoint.requestToken(
    credentials,
    signal,
    exchanges ? { subject: MADE_UP_TOKEN } : {},
  );
  const [tokenUrl, metadata] = [endpoint.tokenUrl(), endpoint.metadata()];
  const wholeUrl = config.tokenUrl ?? metadata?.tokenUrl;
  await endpoint.close();

  const findings = [...describeDiscovery(config, metadata, of), ...describeUrl(config, wholeUrl, of)];
  const skewMs = answer === undefined ? undefined : skewOf(answer);
  const clockFinding = answer === undefined ? [] : [describeClock(skewMs, of)];
  const exchange =
    exchanges && answer !== undefined && tokenUrl !== undefined
      ? describeExchange(outcome, answer, of)
      : undefined;
  if (exchange !== undefined) return { findings: [...findings, exchange, ...clockFinding], token: undefined };
  if (outcome.result === 'success') {
    const { accessToken: token, lifetimeMs, isLifetimeAssumed = false } = outcome;
    const source = tokenUrl === undefined ? 'mounted' : `granted by ${new URL(tokenUrl).host}`;
    const lifetime = Math.round(lifetimeMs / 1000);
    const end = Number.isFinite(lifetime) ? `lives ${lifetime} s` : 'lives until it is replaced';
    const assumed = `; it does not say how long it lives, and ${lifetime} s are assumed`;
    const bound = outcome.boundToken && `, bound to the key ${outcome.boundToken.thumbprint}`;
    findings.push(of.ok('token', `${source}${isLifetimeAssumed ? assumed : `, ${end}`}${bound ?? ''}`));
    if (config.dpop !== undefined && bound === undefined) {
      const remedy = 'have the provider bind the tokens of this client (DPoP)';
      findings.push(of.warning('token', 'its type is Bearer: whoever steals it can use it', remedy));
    }
    const { clientId } = credentials;
    const granted = { token, lifetimeMs, isLifetimeAssumed, answer, clientId };
    findings.push(...describeToken(config, granted, of), ...clockFinding);
    return { findings, token: outcome.boundToken ?? token };
  }
  const clientKey = signingKey(credentials);
  const { code, reason, advice } = whyNoToken(config, { lastFailure: outcome, clientKey });
  const asked = tokenUrl ?? config.issuerUrl;
  if (signal.aborted && asked !== undefined) {
    return { findings: [...findings, notInTime(asked, of)], token: undefined };
  }
  const mistake =
    asked === undefined
      ? undefined
      : mistakeOf({
          url: new URL(asked),
          config,
          refusal: answer && refusalIn(answer),
          client: { id: credentials.clientId, secret: sharedSecret(credentials) },
          skewMs,
          offered: metadata?.clientAuthentication,
        });
  const step = metadata === undefined && config.issuerUrl !== undefined ? 'discovery' : 'token';
  const remedy = mistake?.remedy ?? advice ?? "look at the provider's log";
  findings.push(of.failure(step, code, reason, remedy));
  return { findings: [...findings, ...clockFinding], token: undefined };
}

/**
 * What the answer to a made-up token says of the client, which the provider looks at first. Undefined if it refuses
 * the client, or anything else that requests would meet.
 */
function describeExchange(outcome: TokenResponse, answer: EndpointResponse, of: About): Finding | undefined {
  if (outcome.result === 'success') {
    const remedy = 'have the provider check the tokens that it exchanges';
    return of.warning('token', 'the provider exchanges a token that nobody has issued', remedy);
  }
  if (/invalid_grant|invalid[ _](?:subject[ _])?token/i.test(outcome.detail)) {
    const detail = `tokens of requests are exchanged: the provider takes the client, and refuses only the made-up token of this check (${outcome.detail})`;
    return of.ok('token', detail);
  }
  const { status, error } = refusalIn(answer);
  if (outcome.blames !== 'subject' && (error !== undefined || ![401, 403, 500].includes(status)))
    return undefined;
  const detail = `tokens of requests are exchanged: the provider refuses the client, or the made-up token of this check (${outcome.detail})`;
  return of.warning('token', detail, 'send a request with a token that can be exchanged');
}

function notInTime(asked: string, of: About): Finding {
  const detail = `${redactedUrl(asked)} had not answered when the time for all steps was up`;
  const remedy = 'look at the provider, or give more time by --check-timeout';
  return of.failure('token', 'provider_unavailable', detail, remedy);
}

/** The URL reveals a realm in the base URL. Its query is hidden but for the grant. */
function describeUrl(config: CredentialConfig, tokenUrl: string | undefined, of: About): Finding[] {
  if (tokenUrl === undefined) return [];
  const url = new URL(tokenUrl);
  const grant = grantInQuery(url) ?? config.grant?.type ?? 'client_credentials';
  const shown = `POST ${redactedUrl(tokenUrl)}, grant ${grant}, client by ${config.clientAuth.method}`;
  const mistake = mistakeInUrl({ url, config });
  return [mistake === undefined ? of.ok('token_url', shown) : of.warning('token_url', shown, mistake.remedy)];
}

/** It takes the place of the configured one. */
function grantInQuery({ searchParams }: URL): string | undefined {
  const grant = searchParams.get('grant_type') ?? '';
  return /^[\w.:-]{1,80}$/.test(grant) ? grant : undefined;
}

const WITHOUT_DPOP =
  'the issuer lists no algorithm for proofs (dpop_signing_alg_values_supported), and proofOfPossession is dpop';

function describeDiscovery(
  { clientAuth, dpop }: CredentialConfig,
  metadata: IssuerMetadata | undefined,
  of: About,
): Finding[] {
  if (metadata === undefined) return [];
  const { method } = clientAuth;
  const { foundAt, tokenUrl, clientAuthentication } = metadata;
  const isWithoutDpop = dpop !== undefined && !metadata.offersDpop;
  const found = [
    of.ok('discovery', `${foundAt} names ${redactedUrl(tokenUrl)}`),
    ...(isWithoutDpop ? [of.warning('discovery', WITHOUT_DPOP, 'turn DPoP on at the provider')] : []),
  ];
  if (publishedNames(clientAuth).some((one) => clientAuthentication.includes(one))) {
    return [...found, of.ok('client_authentication', `${method} is offered`)];
  }
  const offered = clientAuthentication.filter((one) => /^[\w-]{1,40}$/.test(one)).slice(0, 10);
  const detail = `${method} is not among those that the issuer offers: ${offered.join(', ') || 'none'}`;
  return [
    ...found,
    of.warning('client_authentication', detail, 'set clientAuth to one of them if no token is granted'),
  ];
}
