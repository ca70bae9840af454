/** The table of grants. A new one is a row here. */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { CredentialSettings, GrantConfig, JwtBearerGrant } from '../../config/config.ts';
import { parseObject } from '../../platform/json-object.ts';
import { InvalidFile, type InvalidSecret, readMountedSecret } from '../../platform/mounted/mounted-secret.ts';
import { REFUSED_TOKEN, tokenHash } from '../broker-protocol.ts';
import { type AssertionKey, parseAssertionKey, signAssertion } from '../client/assertion.ts';
import type { ProofOfClient } from '../client/client-authentication.ts';
import type { MountedFiles } from '../credentials.ts';
import { ownLifetime, type TokenResponse, wrongToken } from '../provider/token-response.ts';

export type GrantMaterial = SigningParty | ServiceAccount | GithubApp | MountedToken;

type GrantName = 'client_credentials' | JwtBearerGrant['kind'] | Exclude<GrantConfig['type'], 'jwt_bearer'>;

type Config<N extends GrantName> = N extends 'client_credentials'
  ? undefined
  : Extract<JwtBearerGrant, { readonly kind: N }> | Extract<GrantConfig, { readonly type: N }>;
type Material<N extends GrantName> = N extends GrantMaterial['grant']
  ? Extract<GrantMaterial, { readonly grant: N }>
  : undefined;

interface Grant<N extends GrantName> {
  /** Whether replicas may share a token. A mounted one costs no request. */
  readonly mayShareToken: boolean;
  /** Whether the client signs; then `client_id` is read unless configured. */
  readonly signsAsClient?: (config: Config<N>) => boolean;
  /** In the credential's directory. */
  files(config: Config<N>): readonly string[];
  /** Problems name no secret value. */
  understand(config: Config<N>, clientId: string, files: MountedFiles): Material<N> | InvalidSecret;
  request(
    config: Config<N>,
    material: Material<N>,
    credential: CredentialSettings,
    occasion: GrantOccasion,
  ): GrantRequest | Promise<GrantRequest>;
}

const GRANTS: { readonly [N in GrantName]: Grant<N> } = {
  client_credentials: {
    mayShareToken: true,
    files: () => [],
    understand: () => undefined,
    request: (_config, _material, credential, occasion) => askForClient(credential, occasion),
  },
  rfc7523: {
    mayShareToken: true,
    signsAsClient: ({ issuer }) => issuer === undefined,
    files: ({ keyFile, certificateFile }) =>
      certificateFile === undefined ? [keyFile] : [keyFile, certificateFile],
    understand: signingParty,
    request: askByAssertion,
  },
  google_service_account: {
    mayShareToken: true,
    files: ({ keyFile }) => [keyFile],
    understand: (config, _clientId, files) => serviceAccount(config, files),
    request: askForServiceAccount,
  },
  github_app: {
    mayShareToken: true,
    signsAsClient: ({ issuer }) => issuer === undefined,
    files: ({ keyFile }) => [keyFile],
    understand: githubApp,
    request: (config, material, _credential, occasion) => askForInstallation(config, material, occasion),
  },
  token_exchange: {
    mayShareToken: false,
    files: exchangedFiles,
    understand: (config, _clientId, files) => unusableExchange(config, files),
    request: (config, _material, credential, occasion) => askByExchange(config, credential, occasion),
  },
  static: {
    mayShareToken: false,
    files: ({ tokenFile }) => [tokenFile],
    understand: (config, _clientId, files) => mountedToken(config, files),
    request: () => {
      throw new Error('no provider is asked for a mounted token');
    },
  },
};

function nameOf(grant: GrantConfig | undefined): GrantName {
  if (grant === undefined) return 'client_credentials';
  return grant.type === 'jwt_bearer' ? grant.kind : grant.type;
}

function grantOf<N extends GrantName>(name: N): Grant<N> {
  return GRANTS[name];
}

type Settings = Pick<CredentialSettings, 'grant' | 'clientId'>;

export function mayShareGranted(config: GrantConfig | undefined): boolean {
  return grantOf(nameOf(config)).mayShareToken;
}

export function grantFiles({ grant: config, clientId }: Settings): readonly string[] {
  const grant = grantOf(nameOf(config));
  const own = grant.files(config);
  return clientId === undefined && grant.signsAsClient?.(config) ? ['client_id', ...own] : own;
}

/** @returns undefined for a grant that needs nothing of its own, or reads it for each request. */
export function understandGrant(
  { grant: config, clientId }: Settings,
  files: MountedFiles,
): GrantMaterial | InvalidSecret | undefined {
  return grantOf(nameOf(config)).understand(config, clientId ?? files.content('client_id'), files);
}

/** @throws {InvalidFile} if a file that is read for each request cannot be read. */
export async function grantRequest(
  credential: CredentialSettings,
  material: GrantMaterial | undefined,
  occasion: GrantOccasion,
): Promise<GrantRequest> {
  const { grant: config } = credential;
  const name = nameOf(config);
  if (material !== undefined && material.grant !== name) {
    // Cannot happen: one set of settings made both.
    throw new Error(`the grant ${name} was given the credentials of another`);
  }
  return await grantOf(name).request(config, material, credential, occasion);
}

/** RFC 6749 §4.4. */
function askForClient(config: CredentialSettings, { proof, tokenUrl, refused }: GrantOccasion): GrantRequest {
  const report = refused === undefined ? {} : { [REFUSED_TOKEN.parameter]: tokenHash.of(refused) };
  return formRequest({ grant_type: 'client_credentials', ...report }, { proof, tokenUrl }, config);
}

/** RFC 8693 §2.1. */
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** One line that a header could carry. */
const TOKEN_TEXT = /^[\x21-\x7e]+$/;
const EXPECTED = 'a token: one line of visible ASCII';

export function exchangesForRequests({ grant }: Pick<CredentialSettings, 'grant'>): boolean {
  return grant?.type === 'token_exchange' && grant.subjectTokenFile === undefined;
}

function exchangedFiles({ subjectTokenFile, actorTokenFile }: Config<'token_exchange'>): readonly string[] {
  return [subjectTokenFile, actorTokenFile].filter((file) => file !== undefined);
}

/** These files are read anew for each grant. */
function unusableExchange(grant: Config<'token_exchange'>, files: MountedFiles): InvalidSecret | undefined {
  const wrong = exchangedFiles(grant).find((name) => !TOKEN_TEXT.test(files.content(name)));
  return wrong === undefined ? undefined : files.malformed(wrong, EXPECTED);
}

/** @throws {InvalidFile} if a token cannot be read now. */
async function askByExchange(
  grant: Config<'token_exchange'>,
  config: CredentialSettings,
  { proof, tokenUrl, subject }: GrantOccasion,
): Promise<GrantRequest> {
  const { directory } = config;
  // Both from one version of the volume.
  const reading = await readMountedSecret(directory, exchangedFiles(grant));
  if (reading.state !== 'loaded') throw new InvalidFile(reading.detail);
  const tokens = Object.entries(reading.values);
  const wrong = tokens.find(([, token]) => !TOKEN_TEXT.test(token));
  if (wrong !== undefined) throw new InvalidFile(`${join(directory, wrong[0])} is not ${EXPECTED}`);
  const { subjectTokenFile, actorTokenFile } = grant;
  const subjectToken = subjectTokenFile === undefined ? subject : reading.values[subjectTokenFile];
  if (subjectToken === undefined) throw new InvalidFile('no request has brought a token to exchange');
  const own = {
    grant_type: TOKEN_EXCHANGE,
    subject_token: subjectToken,
    subject_token_type: grant.subjectTokenType,
    actor_token: actorTokenFile === undefined ? undefined : reading.values[actorTokenFile],
    actor_token_type: actorTokenFile === undefined ? undefined : grant.actorTokenType,
    requested_token_type: grant.requestedTokenType,
  };
  return formRequest(own, { proof, tokenUrl }, config);
}

interface MountedToken {
  readonly grant: 'static';
  readonly token: string;
}

function mountedToken({ tokenFile }: Config<'static'>, files: MountedFiles): MountedToken | InvalidSecret {
  const token = files.content(tokenFile);
  if (wrongToken(token) === undefined) return { grant: 'static', token };
  return files.malformed(tokenFile, 'a token: one line of visible ASCII, up to 64 KiB');
}

/** The token lives until it is replaced, unless it states its own end. */
export function readMountedToken({ token }: MountedToken, nowMs: number): TokenResponse {
  const own = ownLifetime(token, nowMs);
  if (own === undefined)
    return { result: 'success', accessToken: token, lifetimeMs: Number.POSITIVE_INFINITY };
  const { hasEnded, lifetimeMs } = own;
  if (hasEnded) return { result: 'invalid_response', detail: 'its exp is past' };
  return { result: 'success', accessToken: token, lifetimeMs: lifetimeMs ?? Number.POSITIVE_INFINITY };
}

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Providers allow at least three minutes. */
const ASSERTION_SECONDS = 60;

/** RFC 7523 §2.1. */
interface SigningParty {
  readonly grant: 'rfc7523';
  readonly key: AssertionKey;
  readonly issuer: string;
}

type Rfc7523Grant = Extract<JwtBearerGrant, { readonly kind: 'rfc7523' }>;

/** @param clientId the issuer if none is configured. */
function signingParty(
  { keyFile, certificateFile, keyId, algorithm, issuer }: Rfc7523Grant,
  clientId: string,
  files: MountedFiles,
): SigningParty | InvalidSecret {
  const certificate = certificateFile === undefined ? undefined : files.content(certificateFile);
  const key = parseAssertionKey(files.content(keyFile), { keyId, algorithm, certificate });
  if ('expected' in key) {
    return files.malformed(key.in === 'certificate' ? (certificateFile ?? '') : keyFile, key.expected);
  }
  return { grant: 'rfc7523', key, issuer: issuer ?? clientId };
}

function askByAssertion(
  grant: Rfc7523Grant,
  { key, issuer }: SigningParty,
  config: CredentialSettings,
  { proof, tokenUrl, nowMs }: GrantOccasion,
): GrantRequest {
  const assertion = signAssertion(key, {
    issuer,
    subject: grant.subject ?? issuer,
    audience: grant.audience ?? tokenUrl,
    nowMs,
    lifetimeSeconds: ASSERTION_SECONDS,
    assertionId: randomUUID(),
    claims: grant.claims,
  });
  return formRequest({ grant_type: JWT_BEARER, assertion }, { proof, tokenUrl }, config);
}

/** Based on RFC 7523 §2.1 (developers.google.com/identity/protocols/oauth2/service-account). */
interface ServiceAccount {
  readonly grant: 'google_service_account';
  readonly key: AssertionKey;
  readonly email: string;
}

type GoogleGrant = Extract<JwtBearerGrant, { readonly kind: 'google_service_account' }>;

const SERVICE_ACCOUNT_EXPECTED =
  'a key file of a Google service account: JSON with its type, client_email and private_key';

/** Its `token_uri` is not followed: only the configuration says where secrets go. */
function serviceAccount({ keyFile }: GoogleGrant, files: MountedFiles): ServiceAccount | InvalidSecret {
  const fields = parseObject(files.content(keyFile)) ?? {};
  const { type, client_email: email, private_key: pem, private_key_id: keyId } = fields;
  if (type !== 'service_account' || typeof email !== 'string' || email === '' || typeof pem !== 'string') {
    return files.malformed(keyFile, SERVICE_ACCOUNT_EXPECTED);
  }
  const key = parseAssertionKey(pem, {
    algorithm: 'RS256',
    keyId: typeof keyId === 'string' ? keyId : undefined,
  });
  if ('expected' in key) return files.malformed(keyFile, SERVICE_ACCOUNT_EXPECTED);
  return { grant: 'google_service_account', key, email };
}

function askForServiceAccount(
  grant: GoogleGrant,
  { key, email }: ServiceAccount,
  config: CredentialSettings,
  { proof, tokenUrl, nowMs }: GrantOccasion,
): GrantRequest {
  const { scope, ...others } = config;
  const assertion = signAssertion(key, {
    issuer: email,
    // The user in whose name the account acts.
    subject: grant.subject,
    audience: grant.audience ?? tokenUrl,
    nowMs,
    lifetimeSeconds: ASSERTION_SECONDS,
    claims: { scope },
  });
  return formRequest({ grant_type: JWT_BEARER, assertion }, { proof, tokenUrl }, others);
}

/** Not OAuth, see docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app. */
interface GithubApp {
  readonly grant: 'github_app';
  readonly key: AssertionKey;
  readonly issuer: string;
}

type GithubGrant = Extract<JwtBearerGrant, { readonly kind: 'github_app' }>;

function githubApp(
  { keyFile, issuer }: GithubGrant,
  clientId: string,
  files: MountedFiles,
): GithubApp | InvalidSecret {
  const key = parseAssertionKey(files.content(keyFile), { algorithm: 'RS256' });
  if ('expected' in key) return files.malformed(keyFile, key.expected);
  return { grant: 'github_app', key, issuer: issuer ?? clientId };
}

function askForInstallation(
  { repositories, permissions }: GithubGrant,
  { key, issuer }: GithubApp,
  { tokenUrl, nowMs }: Pick<GrantOccasion, 'tokenUrl' | 'nowMs'>,
): GrantRequest {
  const jwt = signAssertion(key, {
    issuer,
    audience: tokenUrl,
    nowMs,
    lifetimeSeconds: ASSERTION_SECONDS,
  });
  return {
    authorization: `Bearer ${jwt}`,
    body: { type: 'application/json', text: JSON.stringify({ repositories, permissions }) },
    accept: 'application/vnd.github+json',
    translate: translateInstallation,
  };
}

const translateInstallation: TranslateResponse = (fields, providerNowMs) => {
  const { token, expires_at: expiresAt, message } = fields;
  if (token === undefined) {
    return typeof message === 'string' ? { error: 'github', error_description: message } : {};
  }
  const endsAtMs = typeof expiresAt === 'string' ? Date.parse(expiresAt) : Number.NaN;
  return {
    access_token: token,
    token_type: 'Bearer',
    expires_in: Number.isNaN(endsAtMs) ? undefined : Math.floor((endsAtMs - providerNowMs) / 1000),
  };
};

interface GrantRequest {
  readonly authorization?: string | undefined;
  readonly body: { readonly type: string; readonly text: string };
  /** JSON by default. */
  readonly accept?: string;
  /** Maps an answer unlike RFC 6749 §5. */
  readonly translate?: TranslateResponse;
}

/** @param providerNowMs wall time of the request by the provider's clock. */
export type TranslateResponse = (
  fields: Readonly<Record<string, unknown>>,
  providerNowMs: number,
) => Readonly<Record<string, unknown>>;

interface GrantOccasion {
  readonly proof: ProofOfClient;
  readonly tokenUrl: string;
  /** Wall time in ms. */
  readonly nowMs: number;
  readonly subject?: string | undefined;
  /** The token that an upstream has refused. */
  readonly refused?: string | undefined;
}

type Asked = Pick<CredentialSettings, 'scope' | 'audience' | 'parameters'>;

/**
 * A form (RFC 6749 §4.4.2, appendix B). What the URL's query has is not repeated (§3.2).
 * @param own with `grant_type`; undefined ones are left out.
 */
function formRequest(
  own: Readonly<Record<string, string | undefined>>,
  { proof: { authorization, parameters }, tokenUrl }: Pick<GrantOccasion, 'proof' | 'tokenUrl'>,
  asked: Asked,
): GrantRequest {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...own, ...parameters })) {
    if (value !== undefined) form.set(name, value);
  }
  if (asked.scope !== undefined) form.set('scope', asked.scope);
  if (asked.audience !== undefined) form.set('audience', asked.audience);
  for (const [name, value] of Object.entries(asked.parameters)) {
    for (const one of typeof value === 'string' ? [value] : value) form.append(name, one);
  }
  for (const name of new URL(tokenUrl).searchParams.keys()) form.delete(name);
  return { authorization, body: { type: 'application/x-www-form-urlencoded', text: form.toString() } };
}
