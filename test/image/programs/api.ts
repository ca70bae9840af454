/** The demo's protected API, run in a container of the pod: it verifies every token against the issuer's keys. */

import { createRemoteJWKSet } from 'jose';
import { startProtectedApi } from '../../../src/demo/parties.ts';

await startProtectedApi({
  listen: { host: '127.0.0.1', port: 15_092 },
  keys: createRemoteJWKSet(new URL('http://127.0.0.1:15091/jwks')),
  issuer: 'http://127.0.0.1:15090/realms/dx',
  audience: 'api',
});
process.once('SIGTERM', () => process.exit(0));
