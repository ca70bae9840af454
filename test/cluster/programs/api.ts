/** An API that serves only callers with a valid token; run in a pod of its own. Its keys are the issuer's. */

import { createRemoteJWKSet } from 'jose';
import { startProtectedApi } from '../../../src/demo/parties.ts';
import { EVERY_ADDRESS } from '../../../src/platform/net/address.ts';

const { JWKS_URL = '', ISSUER = '', AUDIENCE = '' } = process.env;
await startProtectedApi({
  listen: { host: EVERY_ADDRESS, port: 8080 },
  keys: createRemoteJWKSet(new URL(JWKS_URL), { cooldownDuration: 1000 }),
  issuer: ISSUER,
  audience: AUDIENCE,
});
process.once('SIGTERM', () => process.exit(0));
