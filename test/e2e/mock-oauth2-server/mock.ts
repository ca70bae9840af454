import type { JSONWebKeySet } from 'jose';
import { freePort } from '../../support/free-port.ts';
import { MOCK_OAUTH2_SERVER } from '../providers.ts';
import type { RunningProvider } from '../support/client-credentials.ts';
import { startServerProcess } from '../support/server-process.ts';
import { verifyByKeys } from '../support/upstream.ts';

export interface Mock extends RunningProvider {
  close(): Promise<void>;
}

const MAIN = 'no.nav.security.mock.oauth2.StandaloneMockOAuth2ServerKt';

/** Its issuer `shop`, whose tokens live for five seconds. It asks no client for the right secret. */
export async function startMock(): Promise<Mock> {
  const port = await freePort();
  const issuerUrl = `http://127.0.0.1:${port}/shop`;
  const settings = {
    interactiveLogin: false,
    tokenCallbacks: [
      {
        issuerId: 'shop',
        tokenExpiry: 5,
        requestMappings: [
          {
            requestParam: 'grant_type',
            match: 'client_credentials',
            claims: { sub: `\${clientId}`, aud: ['payments'] },
          },
        ],
      },
    ],
  };
  const heap = ['-Xmx128m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'];
  const server = await startServerProcess(
    'java',
    [...heap, '-cp', `${MOCK_OAUTH2_SERVER.directory}/*`, MAIN],
    {
      env: { SERVER_HOSTNAME: '127.0.0.1', SERVER_PORT: `${port}`, JSON_CONFIG: JSON.stringify(settings) },
      ports: [port],
    },
  );
  const keys = (await (await fetch(`${issuerUrl}/jwks`)).json()) as JSONWebKeySet;
  return {
    issuerUrl,
    tokenUrl: `${issuerUrl}/token`,
    verify: verifyByKeys(keys, issuerUrl),
    clientOf: ({ sub }) => sub,
    close: () => server.stop(),
  };
}
