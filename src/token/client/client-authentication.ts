/**
 * How a client shows the token endpoint who it is (RFC 6749 §2.3): for each method a row of all that others ask about
 * it, from what it reads of the mounted files to what one request carries. The settings of a method, and its word in
 * the file, are in `src/config/client-authentication.ts`.
 */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { ClientAuthentication, PrivateKeyJwt } from '../../config/client-authentication.ts';
import type { CredentialSettings } from '../../config/config.ts';
import {
  readMountedSecret,
  UnusableFile,
  type UnusableSecret,
} from '../../platform/mounted/mounted-secret.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { MountedFiles } from '../credentials.ts';
import {
  type AssertionKey,
  parseAssertionKey,
  parseCertificate,
  parsePrivateKey,
  signAssertion,
} from './assertion.ts';

/** What one request carries to show who the client is. */
export interface ProofOfClient {
  /** The Authorization field, for methods that use one. */
  readonly authorization?: string;
  /** Form parameters, for methods that use some. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** A method with everything it takes: one of these is enough to prove who the client is. */
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
  /** It names a client only if one is configured: no `client_id` is read. */
  readonly isNameless?: true;
  /** By one of these names an issuer's metadata offers it (RFC 8414 §2). */
  readonly publishedAs: readonly string[];
  /**
   * Whether these credentials decide what is granted, so that replicas that hold them may share a token. Not where a
   * token that somebody else keeps fresh decides it, too.
   */
  readonly mayShareToken: boolean;
  /** Whether what it sends holds a time of this machine's clock. */
  readonly datesProof?: true;
  /** The certificate that is shown in the handshake: its file in the credential's directory, and its content. */
  readonly certificate?: { readonly file: string; of(client: Client<M>): ClientCertificate };
  /** The secret that the provider knows, too, and may repeat in an answer; undefined where it knows none. */
  sharedSecret(client: Client<M>): string | undefined;
  /** The files that it reads in the credential's directory, besides `client_id`. */
  files(config: Config<M>): readonly string[];
  /** What they hold; or what they should have held, without a secret value. */
  understand(
    config: Config<M>,
    clientId: Client<M>['clientId'],
    files: MountedFiles,
  ): Client<M> | UnusableSecret;
  /** An assertion is signed, or read, anew for each request. */
  prove(client: Client<M>, occasion: Occasion): ProofOfClient | Promise<ProofOfClient>;
}

/** A chain and its key, in PEM. */
interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

/** Where the request goes, and when. */
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
    prove: proveInHeader,
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
    prove: proveInForm,
  },
  private_key_jwt: {
    publishedAs: ['private_key_jwt'],
    mayShareToken: true,
    datesProof: true,
    sharedSecret: () => undefined,
    files: ({ keyFile, certificateFile }) =>
      certificateFile === undefined ? [keyFile] : [keyFile, certificateFile],
    understand: signingClient,
    prove: proveBySignature,
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
    prove: proveByCertificate,
  },
  kubernetes_jwt: {
    isNameless: true,
    publishedAs: ['private_key_jwt'],
    mayShareToken: false,
    sharedSecret: () => undefined,
    files: ({ tokenFile }) => [tokenFile],
    understand: attestedClient,
    prove: proveByAttestation,
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

/** The files that the client's method reads in the credential's directory. */
export function clientFiles({ clientId, clientAuth }: Settings): readonly string[] {
  const method = methodOf(clientAuth);
  const own = method.files(clientAuth);
  return clientId !== undefined || method.isNameless ? own : ['client_id', ...own];
}

/** @param files contents of `clientFiles`. */
export function understandClient(
  { clientId, clientAuth }: Settings,
  files: MountedFiles,
): ClientCredentials | UnusableSecret {
  const method = methodOf(clientAuth);
  const mounted = method.isNameless ? undefined : files.content('client_id');
  return method.understand(clientAuth, clientId ?? mounted, files);
}

/**
 * @param tokenUrl where the request goes.
 * @throws {UnusableFile} if the token that vouches for the client cannot be read now.
 */
export async function proveClient(
  credentials: ClientCredentials,
  tokenUrl: string,
  clock: Clock,
): Promise<ProofOfClient> {
  return await methodOf(credentials).prove(credentials, { tokenUrl, clock });
}

/** The names by which an issuer's metadata may offer the method. */
export function publishedNames(config: ClientAuthentication): readonly string[] {
  return methodOf(config).publishedAs;
}

/** Whether replicas with equal credentials may share a token. */
export function mayShareToken(config: ClientAuthentication): boolean {
  return methodOf(config).mayShareToken;
}

/** Whether the proof holds a time of this machine's clock. */
export function datesProof(config: ClientAuthentication): boolean {
  return methodOf(config).datesProof === true;
}

/** The file, in the credential's directory, of the certificate that the client shows in the handshake. */
export function certificateFile(client: ClientAuthentication | ClientCredentials): string | undefined {
  return methodOf(client).certificate?.file;
}

/** The certificate that the client shows in the handshake. */
export function clientCertificate(client: ClientCredentials): ClientCertificate | undefined {
  return methodOf(client).certificate?.of(client);
}

/** The secret that the provider knows, too. */
export function sharedSecret(client: ClientCredentials): string | undefined {
  return methodOf(client).sharedSecret(client);
}

/** What of the client a provider might repeat in an answer, which must not be shown: alone, and as Basic joins it. */
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

/** The parameters of a client that proves itself with a JWT. */
function assertionParameters(jwt: string): Record<string, string> {
  return { client_assertion_type: ASSERTION_TYPE, client_assertion: jwt };
}

/** `client_secret_basic`: the client shares a secret with the provider (RFC 6749 §2.3.1). */
interface BasicClient {
  readonly method: 'client_secret_basic';
  readonly encoding: 'form' | 'raw';
  readonly clientId: string;
  readonly clientSecret: string;
}

/** `client_secret_post`: the same, in the form. */
interface PostClient {
  readonly method: 'client_secret_post';
  readonly clientId: string;
  readonly clientSecret: string;
}

function proveInHeader({ clientId, clientSecret, encoding }: BasicClient): ProofOfClient {
  const pair = basicPair(clientId, clientSecret, encoding);
  return { authorization: `Basic ${Buffer.from(pair, 'utf8').toString('base64')}`, parameters: {} };
}

function proveInForm({ clientId, clientSecret }: PostClient): ProofOfClient {
  return { parameters: { client_id: clientId, client_secret: clientSecret } };
}

/** The id and the secret as Basic joins them, before Base64. */
function basicPair(clientId: string, secret: string, encoding: BasicClient['encoding']): string {
  const encode = encoding === 'form' ? formEncode : (text: string) => text;
  return `${encode(clientId)}:${encode(secret)}`;
}

/** application/x-www-form-urlencoded of one value: what RFC 6749 §2.3.1 asks of both halves of Basic. */
function formEncode(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1);
}

/** `private_key_jwt`: the client signs an assertion about itself (RFC 7523 §2.2). */
interface SigningClient {
  readonly method: 'private_key_jwt';
  readonly clientId: string;
  readonly key: AssertionKey;
  /** The assertion's `aud`; the token endpoint's URL unless given. */
  readonly audience?: string | undefined;
}

function signingClient(
  { method, keyFile, certificateFile, keyId, algorithm, audience }: PrivateKeyJwt,
  clientId: string,
  files: MountedFiles,
): SigningClient | UnusableSecret {
  const certificate = certificateFile === undefined ? undefined : files.content(certificateFile);
  const key = parseAssertionKey(files.content(keyFile), { keyId, algorithm, certificate });
  if ('expected' in key) {
    return files.malformed(key.in === 'certificate' ? (certificateFile ?? '') : keyFile, key.expected);
  }
  return { method, clientId, key, ...(audience === undefined ? {} : { audience }) };
}

/** Long enough for clocks that differ, too short to be worth stealing: an assertion is used once, at once. */
const LIFETIME_SECONDS = 60;

function proveBySignature(
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

/** `tls_client_auth`: a certificate, shown in the handshake (RFC 8705 §2): a chain and its key, in PEM. */
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
): CertifiedClient | UnusableSecret {
  const certificate = files.content('tls.crt');
  const privateKey = files.content('tls.key');
  const leaf = parseCertificate(certificate);
  if (leaf === undefined) return files.malformed('tls.crt', 'a PEM certificate');
  const key = parsePrivateKey(privateKey);
  if (key === undefined) return files.malformed('tls.key', 'an unencrypted private key in PEM');
  if (!leaf.checkPrivateKey(key)) return files.malformed('tls.key', 'the key of the certificate in tls.crt');
  return { method, clientId, certificate, privateKey };
}

/** The handshake has shown the certificate; the id says whose it should be. */
function proveByCertificate({ clientId }: CertifiedClient): ProofOfClient {
  return { parameters: { client_id: clientId } };
}

/**
 * `kubernetes_jwt`: the cluster vouches for the client in the pod's service-account token (RFC 7523 §2.2), which is
 * replaced hourly. The token is read anew for each grant and is no part of these credentials, which stay the same when
 * it changes.
 */
interface AttestedClient {
  readonly method: 'kubernetes_jwt';
  readonly directory: string;
  readonly tokenFile: string;
  /** Sent only if configured: Keycloak refuses an id that is not the token's own subject. */
  readonly clientId: string | undefined;
}

function attestedClient(
  { method, tokenFile }: Config<'kubernetes_jwt'>,
  clientId: string | undefined,
  files: MountedFiles,
): AttestedClient | UnusableSecret {
  if (!isJwt(files.content(tokenFile))) return files.malformed(tokenFile, 'a signed JWT');
  return { method, tokenFile, directory: files.directory, clientId };
}

/** @throws {UnusableFile} if the token cannot be read now. */
async function proveByAttestation(client: AttestedClient): Promise<ProofOfClient> {
  const token = assertionParameters(await readJwtFile(client.directory, client.tokenFile));
  return { parameters: client.clientId === undefined ? token : { client_id: client.clientId, ...token } };
}

/**
 * The present text of a JWT that somebody else keeps fresh.
 * @throws {UnusableFile} if it cannot be read or is no JWT.
 */
async function readJwtFile(directory: string, name: string): Promise<string> {
  const reading = await readMountedSecret(directory, [name]);
  if (reading.state !== 'loaded') throw new UnusableFile(reading.detail);
  const token = reading.values[name] ?? '';
  if (!isJwt(token)) throw new UnusableFile(`${join(directory, name)} is not a signed JWT`);
  return token;
}

/** Whether a text has the form of a JWS in compact serialization (RFC 7515 §3.1); the provider judges its validity. */
function isJwt(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
}

/** `none`: the client proves nothing, because the grant itself is proof or needs none (RFC 7591 §2). */
interface PublicClient {
  readonly method: 'none';
  /** Sent only if configured. */
  readonly clientId: string | undefined;
}

function nameClient({ clientId }: PublicClient): ProofOfClient {
  return { parameters: clientId === undefined ? {} : { client_id: clientId } };
}
