import type { JWTPayload } from 'jose';
import { expect, it } from 'vitest';
import type { SecretValues } from '../../../src/platform/mounted/secret-layout.ts';
import { runSidecarProcess, type SidecarProcess } from './sidecar-process.ts';
import { trafficUntilNewToken } from './traffic.ts';
import { startUpstream, type VerifyToken } from './upstream.ts';

/** A client as the provider knows it, and as the sidecar does. */
export interface Client {
  /** What is tested by it. */
  readonly name: string;
  readonly id: string;
  readonly credential: Readonly<Record<string, unknown>>;
  readonly files: SecretValues;
}

export interface RunningProvider {
  readonly issuerUrl: string;
  readonly tokenUrl: string;
  readonly verify: VerifyToken;
  readonly clientOf: (claims: JWTPayload) => unknown;
}

export interface Expected {
  /** Each is granted a token. */
  readonly clients: readonly Client[];
  /** What the log says of a client whose secret is wrong; undefined of a provider that takes any. */
  readonly refused?: { readonly client: Client; readonly said: RegExp };
  /** Whose tokens live for five seconds. */
  readonly shortLived: Client;
}

/** The sidecar as a process, in front of an API that verifies each token, with the credential and what is mounted for it. */
export async function runFor(
  { tokenUrl, verify }: RunningProvider,
  { credential, files }: Client,
  aheadSeconds = 0,
): Promise<SidecarProcess> {
  const upstream = await startUpstream(verify);
  return await runSidecarProcess({ credential: { tokenUrl, ...credential }, files, upstream, aheadSeconds });
}

/** What every provider of the client credentials grant is tried with. */
export function clientCredentialsTests(provider: () => RunningProvider, expected: Expected): void {
  const { clients, refused, shortLived } = expected;

  async function expectGranted(sidecar: SidecarProcess, id: string): Promise<void> {
    const { status, body } = await sidecar.request();
    expect('claims' in body ? provider().clientOf(body.claims) : body).toBe(id);
    expect(status).toBe(200);
  }

  it.each(clients)('$name', async (client) => {
    await expectGranted(await runFor(provider(), client), client.id);
  });

  it('is found by its issuer', async () => {
    const [client] = clients as readonly [Client];
    const { issuerUrl, verify } = provider();
    const upstream = await startUpstream(verify);
    const { files, credential } = client;
    const sidecar = await runSidecarProcess({ credential: { issuerUrl, ...credential }, files, upstream });
    await expectGranted(sidecar, client.id);
  });

  if (refused !== undefined) {
    it('a wrong secret is refused, and said so', async () => {
      const sidecar = await runFor(provider(), refused.client);
      expect(await sidecar.request()).toMatchObject({ status: 503, error: 'token_unavailable' });
      expect(sidecar.grants()[0]).toMatch(refused.said);
    });
  }

  it('tokens of five seconds are renewed under traffic, and no request notices', async () => {
    const sidecar = await runFor(provider(), shortLived);
    const first = await sidecar.request();
    expect(first.status).toBe(200);
    const answers = await trafficUntilNewToken(sidecar, first);
    expect([...new Set(answers.map(({ status }) => status))]).toEqual([200]);
    expect(new Set(sidecar.grants())).toEqual(new Set(['success']));
  });
}

/** Clients with a secret. */
export function basic(id: string, secret: string, credential: object = {}): Client {
  return {
    name: `client_secret_basic: ${id}`,
    id,
    credential: { clientAuth: 'client_secret_basic', ...credential },
    files: { client_id: id, client_secret: secret },
  };
}

export function post(id: string, secret: string): Client {
  return {
    name: `client_secret_post: ${id}`,
    id,
    credential: { clientAuth: 'client_secret_post' },
    files: { client_id: id, client_secret: secret },
  };
}
