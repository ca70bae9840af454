import type { JSONWebKeySet } from 'jose';
import { onTestFinished } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import { SPRING } from '../providers.ts';
import type { RunningProvider } from '../support/client-credentials.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';
import { verifyByKeys } from '../support/upstream.ts';

export interface Spring extends RunningProvider {
  close(): Promise<void>;
}

/** A client as Spring Boot's settings have it. */
export interface SpringClient {
  readonly method: 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt';
  readonly secret?: string;
  readonly seconds?: number;
  /** Of the client's own keys, and what it signs with. */
  readonly keys?: { readonly url: string; readonly algorithm: string };
}

export async function startSpring(clients: Readonly<Record<string, SpringClient>>): Promise<Spring> {
  const port = await freePort();
  const issuerUrl = `http://127.0.0.1:${port}`;
  const settings = {
    server: { port, address: '127.0.0.1' },
    spring: {
      security: {
        oauth2: {
          authorizationserver: {
            issuer: issuerUrl,
            client: Object.fromEntries(
              Object.entries(clients).map(([id, client]) => [id, registered(id, client)]),
            ),
          },
        },
      },
    },
  };
  const server = await startProgram('Server', port, settings);
  const keys = (await (await fetch(`${issuerUrl}/oauth2/jwks`)).json()) as JSONWebKeySet;
  return {
    issuerUrl,
    tokenUrl: `${issuerUrl}/oauth2/token`,
    verify: verifyByKeys(keys, issuerUrl),
    clientOf: ({ sub }) => sub,
    close: () => server.stop(),
  };
}

/** An API behind Spring Security's resource server. @returns its URL; gone after the test. */
export async function startSpringApi({ issuerUrl }: Pick<Spring, 'issuerUrl'>): Promise<string> {
  const port = await freePort();
  const jwt = { 'issuer-uri': issuerUrl };
  const settings = {
    server: { port, address: '127.0.0.1' },
    spring: { security: { oauth2: { resourceserver: { jwt } } } },
  };
  const api = await startProgram('Api', port, settings);
  onTestFinished(() => api.stop());
  return `http://127.0.0.1:${port}`;
}

function startProgram(name: 'Server' | 'Api', port: number, settings: object): Promise<ServerProcess> {
  const heap = ['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
  return startServerProcess('java', [...heap, '-cp', `${SPRING.directory}:${SPRING.directory}/*`, name], {
    env: { LC_ALL: 'C.UTF-8', SPRING_APPLICATION_JSON: JSON.stringify(settings) },
    ready: new RegExp(`Started ${name} in`),
    ports: [port],
  });
}

function registered(id: string, { method, secret, seconds = 60, keys }: SpringClient): object {
  return {
    registration: {
      'client-id': id,
      ...(secret === undefined ? {} : { 'client-secret': `{noop}${secret}` }),
      'client-authentication-methods': [method],
      'authorization-grant-types': ['client_credentials'],
      scopes: ['read'],
    },
    token: { 'access-token-time-to-live': `${seconds}s` },
    ...(keys === undefined
      ? {}
      : { 'jwk-set-uri': keys.url, 'token-endpoint-authentication-signing-algorithm': keys.algorithm }),
  };
}
