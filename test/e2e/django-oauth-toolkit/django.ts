import { createHash, generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { DJANGO } from '../providers.ts';
import type { RunningProvider } from '../support/client-credentials.ts';
import { startServerProcess } from '../support/server-process.ts';
import { verifyByIntrospection } from '../support/upstream.ts';

export interface Django extends RunningProvider {
  close(): Promise<void>;
}

const API = { id: 'the-api', secret: 'secret-of-the-api' };

/** Its tokens are opaque: whoever gets one asks it. */
export async function startDjango(
  clients: Readonly<Record<string, string>>,
  tokenSeconds: number,
): Promise<Django> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-django-'));
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const port = await freePort();
  const own = Object.entries(clients).map(([id, secret]) => ({ id, secret }));
  const server = await startServerProcess('python3', [join(import.meta.dirname, 'server.py')], {
    env: {
      PYTHONPATH: DJANGO.directory,
      PYTHONDONTWRITEBYTECODE: '1',
      PORT: `${port}`,
      DATABASE: join(directory, 'database'),
      TOKEN_SECONDS: `${tokenSeconds}`,
      SIGNING_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      CLIENTS: JSON.stringify([...own, API]),
    },
    ready: /serving/,
    ports: [port],
  });
  const issuerUrl = `http://127.0.0.1:${port}/o`;
  const ask = verifyByIntrospection(`${issuerUrl}/introspect/`, API.id, API.secret);
  return {
    issuerUrl,
    tokenUrl: `${issuerUrl}/token/`,
    async verify(token) {
      const verdict = await ask(token);
      // It gives tokens no name.
      const jti = createHash('sha256').update(token).digest('hex');
      return 'claims' in verdict ? { claims: { ...verdict.claims, jti } } : verdict;
    },
    clientOf: ({ client_id }) => client_id,
    async close() {
      await server.stop();
      await rm(directory, { recursive: true });
    },
  };
}
