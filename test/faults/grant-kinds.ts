/** Kinds of grant besides client credentials, each of which meets the faults that ought to differ by what is asked with. */

import { generateKeyPairSync } from 'node:crypto';
import { faultsNamed, type ProviderFault } from './provider-faults.ts';

export interface GrantKind {
  readonly name: string;
  /** `grant_type` of its requests. */
  readonly type: string;
  /** Of the credential in the configuration file. */
  readonly credential: Readonly<Record<string, unknown>>;
  /** Mounted beside the client's id and secret. */
  readonly files: Readonly<Record<string, string>>;
}

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

export const GRANT_KINDS: readonly GrantKind[] = [
  {
    name: 'jwt_bearer',
    type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    credential: {
      grant: 'jwt_bearer',
      clientAuth: 'client_secret_basic',
      jwtBearer: { subject: 'somebody' },
    },
    files: { private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() },
  },
  {
    name: 'token_exchange',
    type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    credential: { grant: 'token_exchange' },
    files: { subject_token: 'the-token-of-somebody' },
  },
];

const FAULTS: readonly string[] = [
  'connection refused',
  'reset mid-response',
  '400 invalid_request',
  '400 invalid_grant',
  '401 invalid_client',
  '429 Retry-After: 75',
  '500',
  'HTML 200',
  'accepts and never answers',
  'stops in the middle of its answer',
  'stops in the middle of its answer, over TLS',
];

export const FAULTS_OF_GRANTS: readonly ProviderFault[] = faultsNamed(FAULTS);
