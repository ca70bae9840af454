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
import type { EndpointResponse } from '../token/provider/token-response.ts';
import { whyNoToken } from '../token/why-no-token.ts';
import { checkCertificateFiles } from './certificates.ts';
import { type About, about, type CheckContext, type Finding } from './check-context.ts';
import { mistakeInUrl, mistakeOf, refusalIn } from './mistakes.ts';
import { checkMountedFiles, checkTokenFile } from './mounted-files.ts';
import { reach } from './reach.ts';
import { describeClock, describeToken, skewOf } from './token-facts.ts';

interface ExaminedCredential {
  readonly findings: readonly Finding[];
  /** Only in memory. */
  readonly token: string | undefined;
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
  if (secret.state !== 'loaded' || examination.isOffline) return ended;
  const asked = config.tokenUrl ?? config.issuerUrl;
  if (asked !== undefined) {
    const way = await reachProvider(config, new URL(asked), secret.credentials, of, examination);
    findings.push(...way.findings);
    if (!way.isReached) return ended;
  }
  if (exchangesForRequests(config)) {
    findings.push(of.ok('token', 'exchanged for those of requests: nothing to be tried without one'));
    return ended;
  }
  const { token, findings: ofToken } = await requestToken(config, secret.credentials, of, examination);
  return { findings: [...findings, ...ofToken], token };
}

function certificateOf({ clientAuth, directory }: CredentialConfig): string | undefined {
  const file = certificateFile(clientAuth);
  return file === undefined ? undefined : join(directory, file);
}

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
  const outcome = await endpoint.requestToken(credentials, signal);
  const [tokenUrl, metadata] = [endpoint.tokenUrl(), endpoint.metadata()];
  await endpoint.close();

  const findings = [...describeDiscovery(config, metadata, of), ...describeUrl(config, tokenUrl, of)];
  const skewMs = answer === undefined ? undefined : skewOf(answer);
  const clockFinding = answer === undefined ? [] : [describeClock(skewMs, of)];
  if (outcome.result === 'success') {
    const { accessToken: token, lifetimeMs } = outcome;
    const source = tokenUrl === undefined ? 'mounted' : `granted by ${new URL(tokenUrl).host}`;
    const lifetime = Math.round(lifetimeMs / 1000);
    const end = Number.isFinite(lifetime) ? `lives ${lifetime} s` : 'lives until it is replaced';
    findings.push(of.ok('token', `${source}, ${end}`));
    const { clientId } = credentials;
    findings.push(...describeToken(config, { token, lifetimeMs, answer, clientId }, of), ...clockFinding);
    return { findings, token };
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

function notInTime(asked: string, of: About): Finding {
  const detail = `${redactedUrl(asked)} had not answered when the time for all steps was up`;
  const remedy = 'look at the provider, or give more time by --check-timeout';
  return of.failure('token', 'provider_unavailable', detail, remedy);
}

/** The URL reveals a realm in the base URL. Its query is hidden. */
function describeUrl(config: CredentialConfig, tokenUrl: string | undefined, of: About): Finding[] {
  if (tokenUrl === undefined) return [];
  const grant = config.grant?.type ?? 'client_credentials';
  const shown = `POST ${tokenUrl}, grant ${grant}, client by ${config.clientAuth.method}`;
  const mistake = mistakeInUrl({ url: new URL(tokenUrl), config });
  return [mistake === undefined ? of.ok('token_url', shown) : of.warning('token_url', shown, mistake.remedy)];
}

function describeDiscovery(
  { clientAuth }: CredentialConfig,
  metadata: IssuerMetadata | undefined,
  of: About,
): Finding[] {
  if (metadata === undefined) return [];
  const { method } = clientAuth;
  const { foundAt, tokenUrl, clientAuthentication } = metadata;
  const found = of.ok('discovery', `${foundAt} names ${redactedUrl(tokenUrl)}`);
  if (publishedNames(clientAuth).some((one) => clientAuthentication.includes(one))) {
    return [found, of.ok('client_authentication', `${method} is offered`)];
  }
  const offered = clientAuthentication.filter((one) => /^[\w-]{1,40}$/.test(one)).slice(0, 10);
  const detail = `${method} is not among those that the issuer offers: ${offered.join(', ') || 'none'}`;
  return [
    found,
    of.warning('client_authentication', detail, 'set clientAuth to one of them if no token is granted'),
  ];
}
