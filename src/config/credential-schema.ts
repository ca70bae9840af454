import * as v from 'valibot';
import { assertionAlgorithm, clientAuthenticationSettings as client } from './client-authentication.ts';
import type { GrantConfig, JwtBearerGrant } from './config.ts';
import { renewal } from './renewal.ts';
import { asWritten, field, formatted, wholeNumber, words } from './value-schemas.ts';
import { formats, PROOFS_OF_POSSESSION } from './values.ts';

function wordsOf<Word extends string>(all: Readonly<Record<Word, true>>) {
  return words(Object.keys(all) as Word[]);
}

const grantType = wordsOf<'client_credentials' | GrantConfig['type']>({
  client_credentials: true,
  jwt_bearer: true,
  token_exchange: true,
  static: true,
});

const jwtBearerKind = wordsOf<JwtBearerGrant['kind']>({
  rfc7523: true,
  google_service_account: true,
  github_app: true,
});

const jwtBearer = v.strictObject(
  {
    kind: v.optional(jwtBearerKind),
    keyFile: v.optional(field.fileName),
    certificateFile: v.optional(field.fileName),
    keyId: v.optional(field.text),
    algorithm: v.optional(assertionAlgorithm),
    issuer: v.optional(field.text),
    subject: v.optional(field.text),
    audience: v.optional(field.text),
    claims: v.optional(v.record(v.string(), field.text, 'a mapping of claims to strings')),
    repositories: v.optional(v.array(field.text, 'a list of names')),
    permissions: v.optional(v.record(v.string(), field.text, 'a mapping of permissions to strings')),
  },
  'a mapping',
);

const TOKEN_TYPE = 'access_token, id_token, refresh_token, jwt, saml1, saml2 or a URI';
const tokenTypeUri = v.pipe(
  v.string(TOKEN_TYPE),
  v.regex(/^(?:access_token|id_token|refresh_token|jwt|saml[12]|[a-z][a-z0-9+.-]*:\S+)$/, TOKEN_TYPE),
);

const tokenExchange = v.strictObject(
  {
    subjectTokenFrom: v.optional(words(['file', 'request'])),
    subjectTokenFile: v.optional(field.fileName),
    subjectTokenType: v.optional(tokenTypeUri),
    actorTokenFile: v.optional(field.fileName),
    actorTokenType: v.optional(tokenTypeUri),
    requestedTokenType: v.optional(tokenTypeUri),
  },
  'a mapping',
);

const staticToken = v.strictObject({ tokenFile: v.optional(field.fileName) }, 'a mapping');

const dpop = v.strictObject(
  { keyFile: v.optional(field.fileName), allowBearer: v.optional(field.flag) },
  'a mapping',
);

const credentialTls = v.strictObject(
  { caFile: v.optional(field.path), serverName: v.optional(field.text) },
  'a mapping',
);

const MODE = 'permission bits in octal, in quotes, such as "0640"; nobody may execute it';
const GROUP = 'the number of a group, from 0 to 4294967294';
export const egressProxy = v.strictObject(
  {
    url: v.optional(v.string('a URL')),
    credentialsDir: v.optional(field.path),
    noProxy: v.optional(
      v.pipe(v.array(field.text, 'a list of hosts'), v.maxLength(100, 'a list of at most 100 hosts')),
    ),
  },
  'a mapping',
);

export const output = v.strictObject(
  {
    file: v.optional(v.pipe(field.path, v.regex(/[^/]$/, 'an absolute path of a file'))),
    mode: v.optional(v.pipe(v.string(MODE), v.regex(/^0?[046]{3}$/, MODE))),
    group: v.optional(wholeNumber(0, 2 ** 32 - 2, GROUP)),
    endpoint: v.optional(field.flag),
  },
  'a mapping',
);

export const credential = v.strictObject(
  {
    name: field.name,
    authUrl: v.optional(field.url),
    realm: v.optional(field.text),
    tokenUrl: v.optional(asWritten(formats.tokenEndpointUrl)),
    issuerUrl: v.optional(field.url),
    allowInsecureTokenUrl: v.optional(field.flag),
    dir: v.optional(field.path),
    clientId: v.optional(field.text),
    clientAuth: client.clientAuth,
    assertion: client.assertion,
    grant: v.optional(grantType),
    jwtBearer: v.optional(jwtBearer),
    tokenExchange: v.optional(tokenExchange),
    static: v.optional(staticToken),
    basicEncoding: client.basicEncoding,
    required: v.optional(field.flag),
    output: v.optional(output),
    tokenType: v.optional(words(['bearer', 'any'])),
    proofOfPossession: v.optional(words(PROOFS_OF_POSSESSION)),
    dpop: v.optional(dpop),
    scope: v.optional(field.text),
    audience: v.optional(field.text),
    parameters: v.optional(
      v.record(v.string(), field.parameterValue, 'a mapping of parameter names to values'),
    ),
    tls: v.optional(credentialTls),
    egressProxy: v.optional(egressProxy),
    timeouts: v.optional(
      v.strictObject(
        { request: v.optional(formatted(formats.duration)), wait: v.optional(formatted(formats.duration)) },
        'a mapping',
      ),
    ),
    renewal: v.optional(renewal),
  },
  'a mapping',
);

export type CredentialEntry = v.InferOutput<typeof credential>;
