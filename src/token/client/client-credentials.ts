/** What a client proves itself with: which mounted files its method needs, and what they must hold. */

import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import type { ClientAuthentication, CredentialConfig } from '../../config/config.ts';
import { readMountedSecret, type UnusableSecret } from '../../credentials/mounted-secret.ts';
import { type AssertionKey, parseAssertionKey, parsePrivateKey } from './assertion-key.ts';

/** A method with everything it takes: one of these alone is enough to prove who the client is. */
export type ClientCredentials =
  | BasicClient
  | { readonly method: 'client_secret_post'; readonly clientId: string; readonly clientSecret: string }
  | SigningClient
  | CertifiedClient
  | AttestedClient;

export interface BasicClient {
  readonly method: 'client_secret_basic';
  readonly encoding: 'form' | 'raw';
  readonly clientId: string;
  readonly clientSecret: string;
}

export interface SigningClient {
  readonly method: 'private_key_jwt';
  readonly clientId: string;
  readonly key: AssertionKey;
  readonly audience: string;
}

/** A certificate chain and its key, in PEM. */
export interface CertifiedClient {
  readonly method: 'tls_client_auth';
  readonly clientId: string;
  readonly certificate: string;
  readonly privateKey: string;
}

/**
 * Somebody else vouches for the client, in a token that is replaced hourly. It is read anew for each grant and no part
 * of these credentials, which stay the same when it changes.
 */
export interface AttestedClient {
  readonly method: 'kubernetes_jwt';
  readonly directory: string;
  readonly tokenFile: string;
  /** Not sent unless configured: Keycloak refuses one that is not the token's own subject. */
  readonly clientId: string | undefined;
}

export type CredentialsReading =
  | { readonly state: 'loaded'; readonly credentials: ClientCredentials; readonly detail?: undefined }
  | UnusableSecret;

type CredentialSettings = Pick<CredentialConfig, 'directory' | 'clientId' | 'clientAuth'>;

/** The files that the method reads in the credential's directory. */
export function credentialFiles({ clientId, clientAuth }: CredentialSettings): readonly string[] {
  const own = methodFiles(clientAuth);
  return clientId !== undefined || clientAuth.method === 'kubernetes_jwt' ? own : ['client_id', ...own];
}

function methodFiles(clientAuth: ClientAuthentication): readonly string[] {
  switch (clientAuth.method) {
    case 'client_secret_basic':
    case 'client_secret_post':
      return ['client_secret'];
    case 'private_key_jwt':
      return [clientAuth.keyFile];
    case 'tls_client_auth':
      return ['tls.crt', 'tls.key'];
    case 'kubernetes_jwt':
      return [clientAuth.tokenFile];
  }
}

/** The credentials as they are mounted now. Never throws; the state says what is wrong, without a value. */
export async function readCredentials(settings: CredentialSettings): Promise<CredentialsReading> {
  const reading = await readMountedSecret(settings.directory, credentialFiles(settings));
  return reading.state === 'loaded' ? understandCredentials(settings, reading.values) : reading;
}

/** @param files contents of `credentialFiles`, by name. */
export function understandCredentials(
  settings: CredentialSettings,
  files: Readonly<Record<string, string>>,
): CredentialsReading {
  const { clientAuth } = settings;
  const content = (name: string): string => files[name] ?? '';
  const malformed = (name: string, expected: string): UnusableSecret => ({
    state: 'malformed',
    detail: `${join(settings.directory, name)} is not ${expected}`,
  });
  const clientId = settings.clientId ?? content('client_id');
  switch (clientAuth.method) {
    case 'client_secret_basic':
    case 'client_secret_post':
      return loaded({ ...clientAuth, clientId, clientSecret: content('client_secret') });
    case 'private_key_jwt': {
      const { method, keyFile, keyId, audience } = clientAuth;
      const key = parseAssertionKey(content(keyFile), keyId);
      if ('expected' in key) return malformed(keyFile, key.expected);
      return loaded({ method, clientId, key, audience });
    }
    case 'tls_client_auth': {
      const certificate = content('tls.crt');
      const privateKey = content('tls.key');
      const leaf = parseCertificate(certificate);
      if (leaf === undefined) return malformed('tls.crt', 'a PEM certificate');
      const key = parsePrivateKey(privateKey);
      if (key === undefined) return malformed('tls.key', 'an unencrypted private key in PEM');
      if (!leaf.checkPrivateKey(key)) return malformed('tls.key', 'the key of the certificate in tls.crt');
      return loaded({ ...clientAuth, clientId, certificate, privateKey });
    }
    case 'kubernetes_jwt': {
      if (!isJwt(content(clientAuth.tokenFile))) return malformed(clientAuth.tokenFile, 'a signed JWT');
      const { directory, clientId: sentId } = settings;
      return loaded({ ...clientAuth, directory, clientId: sentId });
    }
  }
}

/** The form of a JWS in compact serialization (RFC 7515 §3.1); whether it is valid is the provider's to say. */
export function isJwt(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
}

function loaded(credentials: ClientCredentials): CredentialsReading {
  return { state: 'loaded', credentials };
}

function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
