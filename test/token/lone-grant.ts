/**
 * Asks for one token, in a process of its own, and prints what came of it and what is left. The connection is not closed:
 * an idle one must not keep the process from its end.
 *
 *     node lone-grant.ts TOKEN_URL
 */

import { systemClock } from '../../src/platform/time/clock.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { credentialConfig } from '../support/credential-config.ts';

const endpoint = createTokenEndpoint(credentialConfig({ tokenUrl: process.argv[2] as string }), systemClock);
const outcome = await endpoint.requestToken(
  { method: 'client_secret_basic', encoding: 'form', clientId: 'shop', clientSecret: 's3cret' },
  new AbortController().signal,
);
// Not documented, nor typed, but the only one to know.
const { moduleLoadList } = process as unknown as { readonly moduleLoadList: readonly string[] };
process.stdout.write(
  JSON.stringify({
    outcome,
    sockets: process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length,
    fetchLoaded: moduleLoadList.some((name) => name.includes('undici')),
    // That it would be seen.
    httpLoaded: moduleLoadList.some((name) => name.endsWith(' http')),
  }),
);
