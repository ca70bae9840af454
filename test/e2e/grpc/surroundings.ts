/** What a gRPC client is tested in: a token endpoint, the server, and the sidecar between it and the client. */

import { answer, ScriptedTokenEndpoint } from '../../support/scripted-token-endpoint.ts';
import { runSidecar, type SidecarUnderTest } from '../support/sidecar.ts';
import { type EchoServer, type EchoServerOptions, startEchoServer } from './echo-server.ts';

export type UpstreamKind = EchoServerOptions['upstream'];

/** Every token begins so, as a JWT would: the sidecar's log is searched for it. */
const TOKEN_MARK = 'eyJlMmUtdG9rZW4t';

const FILES = { client_id: 'shop', client_secret: 'a secret for the gRPC tests' };

export interface Surroundings {
  readonly endpoint: ScriptedTokenEndpoint;
  readonly server: EchoServer;
  readonly sidecar: SidecarUnderTest;
}

export interface SurroundingsOptions {
  readonly upstream: UpstreamKind;
  readonly tokenLifetimeSeconds?: number;
  /** The token that the server refuses once it has been used, counted from 1. */
  readonly revokedToken?: number;
  readonly connectionAge?: string;
  readonly program?: EchoServerOptions['program'];
  /** Whether there is a token at all. */
  readonly provider?: 'grants' | 'refuses';
  readonly route?: Readonly<Record<string, unknown>>;
  readonly credential?: Readonly<Record<string, unknown>>;
  readonly settings?: Readonly<Record<string, unknown>>;
}

export function bearer(number: number): string {
  return `Bearer ${TOKEN_MARK}${number}`;
}

export async function startSurroundings(options: SurroundingsOptions): Promise<Surroundings> {
  const { upstream, tokenLifetimeSeconds = 300, revokedToken = 0, provider = 'grants' } = options;
  let granted = 0;
  const endpoint = await ScriptedTokenEndpoint.start(
    provider === 'grants'
      ? answer(200, () => {
          granted++;
          const access_token = `${TOKEN_MARK}${granted}`;
          return JSON.stringify({ access_token, token_type: 'Bearer', expires_in: tokenLifetimeSeconds });
        })
      : answer(503, ''),
  );
  const server = await startEchoServer({
    upstream,
    authorization: bearer(0).slice(0, -1),
    revoked: bearer(revokedToken),
    ...(options.program === undefined ? {} : { program: options.program }),
    ...(options.connectionAge === undefined ? {} : { connectionAge: options.connectionAge }),
  });
  const sidecar = await runSidecar({
    credential: { tokenUrl: endpoint.url, ...options.credential },
    files: FILES,
    upstream: server,
    route: { ...server.route, ...options.route },
    ...(options.settings === undefined ? {} : { settings: options.settings }),
  });
  return { endpoint, server, sidecar };
}
