import { setTimeout as passes } from 'node:timers/promises';
import type { JSONWebKeySet } from 'jose';
import { freePort } from '../../support/free-port.ts';
import { HYDRA } from '../providers.ts';
import type { RunningProvider } from '../support/client-credentials.ts';
import { startServerProcess } from '../support/server-process.ts';
import { verifyByKeys } from '../support/upstream.ts';

const BETWEEN_ATTEMPTS_MS = 200;

export interface Hydra extends RunningProvider {
  addClient(registration: Readonly<Record<string, unknown>>): Promise<void>;
  close(): Promise<void>;
}

/** Starts it with its data in memory and access tokens that are JWTs. */
export async function startHydra(): Promise<Hydra> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const issuerUrl = `http://127.0.0.1:${port}`;
  const admin = `http://127.0.0.1:${adminPort}`;
  const server = await startServerProcess(HYDRA.program, ['serve', 'all', '--dev'], {
    env: {
      DSN: 'memory',
      SERVE_PUBLIC_HOST: '127.0.0.1',
      SERVE_PUBLIC_PORT: `${port}`,
      SERVE_ADMIN_HOST: '127.0.0.1',
      SERVE_ADMIN_PORT: `${adminPort}`,
      URLS_SELF_ISSUER: issuerUrl,
      SECRETS_SYSTEM: 'of these tests and nobody else',
      STRATEGIES_ACCESS_TOKEN: 'jwt',
      SQA_OPT_OUT: 'true',
    },
    ready: /Setting up http server on/,
    ports: [port, adminPort],
  });
  const keys = await keysOf(issuerUrl);
  return {
    issuerUrl,
    tokenUrl: `${issuerUrl}/oauth2/token`,
    verify: verifyByKeys(keys, issuerUrl),
    clientOf: ({ client_id }) => client_id,
    async addClient(registration) {
      const response = await fetch(`${admin}/admin/clients`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ grant_types: ['client_credentials'], scope: 'read', ...registration }),
      });
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    },
    close: () => server.stop(),
  };
}

/** It makes them when it is first asked for them, and ends a request after ten seconds, which they may take longer than. */
async function keysOf(issuerUrl: string): Promise<JSONWebKeySet> {
  for (;;) {
    const answer = await fetch(`${issuerUrl}/.well-known/jwks.json`).catch(() => undefined);
    if (answer?.ok === true) return (await answer.json()) as JSONWebKeySet;
    await passes(BETWEEN_ATTEMPTS_MS);
  }
}
