/**
 * How a client proves itself (RFC 6749 §2.3). A new method is a row here, and its settings are in
 * `src/config/client-authentication.ts`. A new parameter that the user must not set is listed in `OWN_PARAMETERS` of
 * `src/config/resolve-credentials.ts`, and if it is secret in `SECRET_KEYS` of `src/platform/log/redaction.ts`.
 */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { ClientAuthentication, PrivateKeyJwt } from '../../config/client-authentication.ts';
import type { CredentialSettings } from '../../config/config.ts';
import { InvalidFile, type InvalidSecret, readMountedSecret } from '../../platform/mounted/mounted-secret.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { MountedFiles } from '../credentials.ts';
import {
  type AssertionKey,
  parseAssertionKey,
  parseCertificate,
  parsePrivateKey,
  signAssertion,
} from './assertion.ts';

export interface ProofOfClient {
  readonly authorization?: string;
  readonly parameters: Readonly<Record<string, string>>;
}

export type ClientCredentials =
  | BasicClient
  | PostClient
  | SigningClient
  | CertifiedClient
  | AttestedClient
  | PublicClient;

type MethodName = ClientAuthentication['method'];
type Config<M extends MethodName> = Extract<ClientAuthentication, { readonly method: M }>;
type Client<M extends MethodName> = Extract<ClientCredentials, { readonly method: M }>;

interface Method<M extends MethodName> {
  /** No `client_id` is read for it. */
  readonly isNameless?: true;
  /** Its names in an issuer's metadata (RFC 8414 §2). */
  readonly publishedAs: readonly string[];
  /** Whether replicas may share a token. Not if a token kept fresh elsewhere decides what is granted. */
  readonly mayShareToken: boolean;
  /** Whether the proof holds a time of this machine's clock. */
  readonly datesProof?: true;
  /** Shown in the handshake. */
  readonly certificate?: { readonly file: string; of(client: Client<M>): ClientCertificate };
  /** The provider may repeat it in an answer. */
  sharedSecret(client: Client<M>): string | undefined;
  /** In the credential's directory, besides `client_id`. */
  files(config: Config<M>): readonly string[];
  /** Problems name no secret value. */
  understand(
    config: Config<M>,
    clientId: Client<M>['clientId'],
    files: MountedFiles,
  ): Client<M> | InvalidSecret;
  prove(client: Client<M>, occasion: Occasion): ProofOfClient | Promise<ProofOfClient>;
}

interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

interface Occasion {
  readonly tokenUrl: string;
  readonly clock: Clock;
}

const METHODS: { readonly [M in MethodName]: Method<M> } = {
  client_secret_basic: {
    publishedAs: ['client_secret_basic'],
    mayShareToken: true,
    sharedSecret: ({ clientSecret }) => clientSecret,
    files: () => ['client_secret'],
    understand: (config, clientId, files) => ({
      ...config,
      clientId,
      clientSecret: files.content('client_secret'),
    }),
    prove: authenticateInHeader,
  },
  client_secret_post: {
    publishedAs: ['client_secret_post'],
    mayShareToken: true,
    sharedSecret: ({ clientSecret }) => clientSecret,
    files: () => ['client_secret'],
    understand: (config, clientId, files) => ({
      ...config,
      clientId,
      clientSecret: files.content('client_secret'),
    }),
    prove: authenticateInForm,
  },
  private_key_jwt: {
    publishedAs: ['private_key_jwt'],
    mayShareToken: true,
    datesProof: true,
    sharedSecret: () => undefined,
    files: ({ keyFile, certificateFile }) =>
      certificateFile === undefined ? [keyFile] : [keyFile, certificateFile],
    understand: signingClient,
    prove: authenticateBySignature,
  },
  tls_client_auth: {
    publishedAs: ['tls_client_auth', 'self_signed_tls_client_auth'],
    mayShareToken: true,
    certificate: {
      file: 'tls.crt',
      of: ({ certificate, privateKey }) => ({ cert: certificate, key: privateKey }),
    },
    sharedSecret: () => undefined,
    // The names in a Secret of type `kubernetes.io/tls`.
    files: () => ['tls.crt', 'tls.key'],
    understand: certifiedClient,
    prove: authenticateByCertificate,
  },
  kubernetes_jwt: {
    isNameless: true,
    publishedAs: ['private_key_jwt'],
    mayShareToken: false,
    sharedSecret: () => undefined,
    files: ({ tokenFile }) => [tokenFile],
    understand: attestedClient,
    prove: authenticateByAttestation,
  },
  none: {
    isNameless: true,
    publishedAs: ['none'],
    mayShareToken: true,
    sharedSecret: () => undefined,
    files: () => [],
    understand: ({ method }, clientId) => ({ method, clientId }),
    prove: nameClient,
  },
};

function methodOf<M extends MethodName>({ method }: { readonly method: M }): Method<M> {
  return METHODS[method];
}

type Settings = Pick<CredentialSettings, 'clientId' | 'clientAuth'>;

export function clientFiles({ clientId, clientAuth }: Settings): readonly string[] {
  const method = methodOf(clientAuth);
  const own = method.files(clientAuth);
  return clientId !== undefined || method.isNameless ? own : ['client_id', ...own];
}

export function understandClient(
  { clientId, clientAuth }: Settings,
  files: MountedFiles,
): ClientCredentials | InvalidSecret {
  const method = methodOf(clientAuth);
  const mounted = method.isNameless ? undefined : files.content('client_id');
  return method.understand(clientAuth, clientId ?? mounted, files);
}

/** @throws {InvalidFile} if the token that vouches for the client cannot be read. */
export async function authenticateClient(
  credentials: ClientCredentials,
  tokenUrl: string,
  clock: Clock,
): Promise<ProofOfClient> {
  return await methodOf(credentials).prove(credentials, { tokenUrl, clock });
}

export function publishedNames(config: ClientAuthentication): readonly string[] {
  return methodOf(config).publishedAs;
}

export function mayShareToken(config: ClientAuthentication): boolean {
  return methodOf(config).mayShareToken;
}

export function datesProof(config: ClientAuthentication): boolean {
  return methodOf(config).datesProof === true;
}

export function certificateFile(client: ClientAuthentication | ClientCredentials): string | undefined {
  return methodOf(client).certificate?.file;
}

export function clientCertificate(client: ClientCredentials): ClientCertificate | undefined {
  return methodOf(client).certificate?.of(client);
}

export function sharedSecret(client: ClientCredentials): string | undefined {
  return methodOf(client).sharedSecret(client);
}

/** What a provider may know the client's key by. */
export type ClientKey = Pick<AssertionKey, 'keyId' | 'thumbprint'>;

export function signingKey(client: ClientCredentials): ClientKey | undefined {
  if (client.method !== 'private_key_jwt') return undefined;
  const { keyId, thumbprint } = client.key;
  return keyId === undefined ? { thumbprint } : { keyId, thumbprint };
}

/** What must not be shown if a provider repeats it. */
export function repeatedParts(client: ClientCredentials): readonly string[] {
  const { clientId } = client;
  const secret = sharedSecret(client);
  const names = clientId === undefined ? [] : [clientId];
  if (secret === undefined) return names;
  const pairs = (['form', 'raw'] as const).map((encoding) => basicPair(clientId ?? '', secret, encoding));
  return [...pairs, secret, ...names];
}

/** RFC 7523 §2.2. */
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

function assertionParameters(jwt: string): Record<string, string> {
  return { client_assertion_type: ASSERTION_TYPE, client_assertion: jwt };
}

/** RFC 6749 §2.3.1. */
interface BasicClient {
  readonly method: 'client_secret_basic';
  readonly encoding: 'form' | 'raw';
  readonly clientId: string;
  readonly clientSecret: string;
}

interface PostClient {
  readonly method: 'client_secret_post';
  readonly clientId: string;
  readonly clientSecret: string;
}

function authenticateInHeader({ clientId, clientSecret, encoding }: BasicClient): ProofOfClient {
  const pair = basicPair(clientId, clientSecret, encoding);
  return { authorization: `Basic ${Buffer.from(pair, 'utf8').toString('base64')}`, parameters: {} };
}

function authenticateInForm({ clientId, clientSecret }: PostClient): ProofOfClient {
  return { parameters: { client_id: clientId, client_secret: clientSecret } };
}

function basicPair(clientId: string, secret: string, encoding: BasicClient['encoding']): string {
  const encode = encoding === 'form' ? formEncode : (text: string) => text;
  return `${encode(clientId)}:${encode(secret)}`;
}

/** RFC 6749 §2.3.1. */
function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

/** RFC 7523 §2.2. */
interface SigningClient {
  readonly method: 'private_key_jwt';
  readonly clientId: string;
  readonly key: AssertionKey;
  /** `aud`; the token endpoint's URL by default. */
  readonly audience?: string | undefined;
}

function signingClient(
  { method, keyFile, certificateFile, keyId, algorithm, audience }: PrivateKeyJwt,
  clientId: string,
  files: MountedFiles,
): SigningClient | InvalidSecret {
  const certificate = certificateFile === undefined ? undefined : files.content(certificateFile);
  const key = parseAssertionKey(files.content(keyFile), { keyId, algorithm, certificate });
  if ('expected' in key) {
    return files.malformed(key.in === 'certificate' ? (certificateFile ?? '') : keyFile, key.expected);
  }
  return { method, clientId, key, ...(audience === undefined ? {} : { audience }) };
}

/** Long enough for clocks that differ, too short to be worth stealing. */
const LIFETIME_SECONDS = 60;

function authenticateBySignature(
  { clientId, key, audience }: SigningClient,
  { tokenUrl, clock }: Occasion,
): ProofOfClient {
  const assertion = signAssertion(key, {
    issuer: clientId,
    subject: clientId,
    audience: audience ?? tokenUrl,
    nowMs: clock.now().wallMs,
    lifetimeSeconds: LIFETIME_SECONDS,
    assertionId: randomUUID(),
  });
  return { parameters: { client_id: clientId, ...assertionParameters(assertion) } };
}

/** RFC 8705 §2. */
interface CertifiedClient {
  readonly method: 'tls_client_auth';
  readonly clientId: string;
  readonly certificate: string;
  readonly privateKey: string;
}

function certifiedClient(
  { method }: Config<'tls_client_auth'>,
  clientId: string,
  files: MountedFiles,
): CertifiedClient | InvalidSecret {
  const certificate = files.content('tls.crt');
  const privateKey = files.content('tls.key');
  const leaf = parseCertificate(certificate);
  if (leaf === undefined) return files.malformed('tls.crt', 'a PEM certificate');
  const key = parsePrivateKey(privateKey);
  if (key === undefined) return files.malformed('tls.key', 'an unencrypted private key in PEM');
  if (!leaf.checkPrivateKey(key)) return files.malformed('tls.key', 'the key of the certificate in tls.crt');
  return { method, clientId, certificate, privateKey };
}

function authenticateByCertificate({ clientId }: CertifiedClient): ProofOfClient {
  return { parameters: { client_id: clientId } };
}

/** The pod's service-account token vouches for the client (RFC 7523 §2.2). It is read anew for each grant. */
interface AttestedClient {
  readonly method: 'kubernetes_jwt';
  readonly directory: string;
  readonly tokenFile: string;
  /** Keycloak refuses an id that is not the token's own subject. */
  readonly clientId: string | undefined;
}

function attestedClient(
  { method, tokenFile }: Config<'kubernetes_jwt'>,
  clientId: string | undefined,
  files: MountedFiles,
): AttestedClient | InvalidSecret {
  if (!isJwt(files.content(tokenFile))) return files.malformed(tokenFile, 'a signed JWT');
  return { method, tokenFile, directory: files.directory, clientId };
}

/** @throws {InvalidFile} */
async function authenticateByAttestation(client: AttestedClient): Promise<ProofOfClient> {
  const token = assertionParameters(await readJwtFile(client.directory, client.tokenFile));
  return { parameters: client.clientId === undefined ? token : { client_id: client.clientId, ...token } };
}

/** @throws {InvalidFile} if it cannot be read or is no JWT. */
async function readJwtFile(directory: string, name: string): Promise<string> {
  const reading = await readMountedSecret(directory, [name]);
  if (reading.state !== 'loaded') throw new InvalidFile(reading.detail);
  const token = reading.values[name] ?? '';
  if (!isJwt(token)) throw new InvalidFile(`${join(directory, name)} is not a signed JWT`);
  return token;
}

/** Only the form (RFC 7515 §3.1); the provider judges the rest. */
function isJwt(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
}

/** RFC 7591 §2. */
interface PublicClient {
  readonly method: 'none';
  readonly clientId: string | undefined;
}

function nameClient({ clientId }: PublicClient): ProofOfClient {
  return { parameters: clientId === undefined ? {} : { client_id: clientId } };
}
