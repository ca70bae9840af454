import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JSONWebKeySet } from 'jose';
import {
  type CertificateAuthority,
  createCertificateAuthority,
} from '../../support/certificate-authority.ts';
import { freePort } from '../../support/free-port.ts';
import { GLEWLWYD } from '../providers.ts';
import { startServerProcess } from '../support/server-process.ts';

/** What Debian's package creates its database with; its administrator is this one. */
const SCHEMA = join(GLEWLWYD.directory, 'usr/share/dbconfig-common/data/glewlwyd/install/sqlite3');
const ADMIN = { username: 'admin', password: 'password' };

export const SCOPE = 'read';

export interface Glewlwyd {
  readonly authority: CertificateAuthority;
  readonly issuer: string;
  /** What goes into a credential of the configuration file to reach it. */
  readonly credential: Readonly<Record<string, unknown>>;
  readonly keys: JSONWebKeySet;
  /** Adds a confidential client that may use the client credentials grant. */
  addClient(properties: Readonly<Record<string, unknown>>): Promise<void>;
  close(): Promise<void>;
}

/** Starts it with an empty database and an OpenID Connect plugin that signs its access tokens. */
export async function startGlewlwyd(transport: 'http' | 'https'): Promise<Glewlwyd> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-glewlwyd-'));
  const file = (name: string): string => join(directory, name);
  const authority = createCertificateAuthority('glewlwyd test authority');
  const certificate = authority.issue('glewlwyd', 'localhost', '127.0.0.1');
  await writeFile(file('ca.crt'), authority.cert);
  await writeFile(file('tls.crt'), certificate.cert);
  await writeFile(file('tls.key'), certificate.key, { mode: 0o600 });
  execFileSync('sqlite3', [file('glewlwyd.db')], { input: readFileSync(SCHEMA) });
  const port = await freePort();
  const base = `${transport}://127.0.0.1:${port}`;
  await writeFile(file('glewlwyd.conf'), configuration(base, port, transport, file));
  const server = await startServerProcess(
    join(GLEWLWYD.directory, 'usr/bin/glewlwyd'),
    [`--config-file=${file('glewlwyd.conf')}`],
    {
      env: { LD_LIBRARY_PATH: join(GLEWLWYD.directory, 'usr/lib/x86_64-linux-gnu') },
      ready: /Glewlwyd started on port/,
      ports: [port],
    },
  );

  const call = (path: string, cookie = '', body?: unknown): Promise<ApiAnswer> =>
    callApi(`${base}/api${path}`, authority.cert, cookie, body);
  const issuer = `${base}/api/oidc`;
  const session = (await call('/auth/', '', ADMIN)).cookie;
  await call('/mod/plugin/', session, plugin(issuer));
  await call('/scope/', session, {
    name: SCOPE,
    display_name: SCOPE,
    password_required: false,
    scheme: {},
  });

  return {
    authority,
    issuer,
    credential: {
      tokenUrl: `${issuer}/token`,
      scope: SCOPE,
      ...(transport === 'https' ? { tls: { caFile: file('ca.crt') } } : {}),
    },
    keys: JSON.parse((await call('/oidc/jwks')).text) as JSONWebKeySet,
    async addClient(properties) {
      await call('/client/', session, {
        confidential: true,
        enabled: true,
        authorization_type: ['client_credentials'],
        scope: [SCOPE],
        redirect_uri: [],
        ...properties,
      });
    },
    async close() {
      await server.stop();
      await rm(directory, { recursive: true });
    },
  };
}

interface ApiAnswer {
  readonly text: string;
  /** The session cookie that came with it. */
  readonly cookie: string;
}

/** @throws {Error} unless the answer is 200. */
function callApi(url: string, ca: string, cookie: string, body: unknown): Promise<ApiAnswer> {
  const send = url.startsWith('https:') ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', cookie, connection: 'close' };
    const request = send(url, { method: body === undefined ? 'GET' : 'POST', headers, ca }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => {
        const [session = ''] = response.headers['set-cookie']?.[0]?.split(';') ?? [];
        if (response.statusCode === 200) resolve({ text, cookie: session });
        else reject(new Error(`${url}: ${response.statusCode} ${text}`));
      });
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function configuration(
  base: string,
  port: number,
  transport: 'http' | 'https',
  file: (name: string) => string,
): string {
  const modules = join(GLEWLWYD.directory, 'usr/lib/glewlwyd');
  const tls = `
use_secure_connection=true
secure_connection_key_file="${file('tls.key')}"
secure_connection_pem_file="${file('tls.crt')}"
secure_connection_ca_file="${file('ca.crt')}"`;
  return `
port=${port}
bind_address="127.0.0.1"
external_url="${base}"
api_prefix="api"
log_mode="console"
log_level="INFO"
cookie_secure=0
session_expiration=3600
session_key="SESSION"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="${modules}/user"
client_module_path="${modules}/client"
user_auth_scheme_module_path="${modules}/scheme"
plugin_module_path="${modules}/plugin"
hash_algorithm="SHA512"
database = { type = "sqlite3"; path = "${file('glewlwyd.db')}"; };
${transport === 'https' ? tls : ''}
`;
}

function plugin(issuer: string): object {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return {
    module: 'oidc',
    name: 'oidc',
    display_name: 'OpenID Connect',
    order_rank: 0,
    parameters: {
      iss: issuer,
      'jwt-type': 'rsa',
      'jwt-key-size': '256',
      key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      cert: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
      'jwks-show': true,
      'access-token-duration': 60,
      'refresh-token-duration': 3600,
      'code-duration': 600,
      'refresh-token-rolling': false,
      // The client credentials grant is no part of OpenID Connect.
      'allow-non-oidc': true,
      'auth-type-client-enabled': true,
      'auth-type-code-enabled': false,
      'auth-type-token-enabled': false,
      'auth-type-id-token-enabled': true,
      'auth-type-none-enabled': false,
      'auth-type-password-enabled': false,
      'auth-type-device-enabled': false,
      'auth-type-refresh-enabled': false,
      scope: [],
      'additional-parameters': [],
      claims: [],
      'service-documentation': '',
      'op-policy-uri': '',
      'op-tos-uri': '',
      'request-parameter-allow': true,
      'request-maximum-exp': 3600,
      'client-pubkey-parameter': 'pubkey',
      'client-jwks-parameter': 'jwks',
      'client-jwks_uri-parameter': 'jwks_uri',
      'client-cert-source': 'TLS',
      'client-cert-self-signed-allowed': false,
      'oauth-dpop-allowed': false,
    },
  };
}
