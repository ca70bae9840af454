/** What a suite's programs meet: a token endpoint, and the sidecar in front of the suite's server. */

import { answer, ScriptedTokenEndpoint } from '../../support/scripted-token-endpoint.ts';
import { selfSigned } from '../../wire/certificate.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';
import { runSidecar, type SidecarUnderTest } from '../support/sidecar.ts';

/** What is spoken to the server. */
export type Spoken = 'HTTP/1.1' | 'HTTP/1.1 over TLS' | 'h2c' | 'h2';

/** What a server shows, in files. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

/** A self-signed one of 127.0.0.1, for the length of the test, where TLS is spoken. */
export async function identityFor(spoken: Spoken): Promise<Identity | undefined> {
  if (spoken === 'HTTP/1.1' || spoken === 'h2c') return undefined;
  const { cert, key } = selfSigned('127.0.0.1');
  return { cert: await temporaryFile('tls.crt', cert), key: await temporaryFile('tls.key', key) };
}

const PROTOCOLS: Readonly<Record<Spoken, string>> = {
  'HTTP/1.1': 'http1',
  'HTTP/1.1 over TLS': 'http1',
  h2c: 'h2c',
  h2: 'h2',
};

/** The sidecar in front of a server on loopback. */
export async function startSidecar(
  spoken: Spoken,
  port: number,
  identity: Identity | undefined,
): Promise<SidecarUnderTest> {
  const granted = JSON.stringify({
    access_token: 'eyJjb25mb3JtYW5jZQ.of.others',
    token_type: 'Bearer',
    expires_in: 300,
  });
  const endpoint = await ScriptedTokenEndpoint.start(answer(200, granted));
  const scheme = identity === undefined ? 'http' : 'https';
  return await runSidecar({
    credential: { tokenUrl: endpoint.url },
    files: { client_id: 'shop', client_secret: 'a secret for the suites' },
    upstream: { url: `${scheme}://127.0.0.1:${port}` },
    route: {
      protocol: PROTOCOLS[spoken],
      ...(identity === undefined ? {} : { tls: { caFile: identity.cert } }),
    },
  });
}
