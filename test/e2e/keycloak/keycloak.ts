import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JSONWebKeySet } from 'jose';
import {
  type CertificateAuthority,
  createCertificateAuthority,
} from '../../support/certificate-authority.ts';
import { freePort } from '../../support/free-port.ts';
import { KEYCLOAK } from '../providers.ts';
import { type ServerProcess, startServerProcess } from '../support/server-process.ts';

const REALM_FILE = fileURLToPath(new URL('../../../deploy/keycloak/dx-realm.json', import.meta.url));
const ADMIN = { username: 'admin', password: 'admin' };

/** Always the same ones: Keycloak rebuilds itself for half a minute whenever they differ from the last start's. */
const FEATURES = ['client-auth-federated', 'kubernetes-service-accounts', 'client-secret-rotation'];

export type Transport = 'http' | 'https';

/** A Keycloak with the realm `dx`, over plain HTTP and over TLS with a certificate of a private authority. */
export interface Keycloak {
  readonly authority: CertificateAuthority;
  /** PEM of the authority. */
  readonly caFile: string;
  /** Base URL. */
  url(transport: Transport): string;
  issuer(transport: Transport): string;
  /** What goes into a credential of the configuration file to reach it. */
  credential(transport: Transport): Record<string, unknown>;
  /** The realm's public keys. */
  keys(): Promise<JSONWebKeySet>;
  /** Calls the admin API at a path within the realm; resolves to the answer's JSON. */
  admin(method: string, path: string, body?: unknown): Promise<unknown>;
  /** Adds a client with a service account; resolves to its id in the admin API. */
  addClient(representation: Readonly<Record<string, unknown>>): Promise<string>;
  clientId(name: string): Promise<string>;
  /** Stops the server; its data stay. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Stops the server and removes the data. */
  close(): Promise<void>;
}

/** Starts it with nothing but the imported realm. */
export async function startKeycloak(): Promise<Keycloak> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-keycloak-'));
  const file = (name: string): string => join(directory, name);
  const authority = createCertificateAuthority('dx test authority');
  const server = authority.issue('keycloak', 'localhost', '127.0.0.1');
  await writeFile(file('ca.pem'), authority.cert);
  await writeFile(file('tls.crt'), server.cert);
  await writeFile(file('tls.key'), server.key, { mode: 0o600 });
  const data = join(KEYCLOAK.directory, 'data');
  await rm(data, { recursive: true, force: true });
  await mkdir(join(data, 'import'), { recursive: true });
  await cp(REALM_FILE, join(data, 'import', 'dx-realm.json'));

  const [httpPort, httpsPort] = [await freePort(), await freePort()];
  const url = (transport: Transport): string =>
    transport === 'http' ? `http://127.0.0.1:${httpPort}` : `https://127.0.0.1:${httpsPort}`;
  const realmUrl = `${url('http')}/realms/dx`;

  const launch = (): Promise<ServerProcess> =>
    startServerProcess(
      join(KEYCLOAK.directory, 'bin/kc.sh'),
      [
        'start-dev',
        '--import-realm',
        '--http-host=127.0.0.1',
        `--http-port=${httpPort}`,
        `--https-port=${httpsPort}`,
        `--https-certificate-file=${file('tls.crt')}`,
        `--https-certificate-key-file=${file('tls.key')}`,
        `--https-trust-store-file=${file('ca.pem')}`,
        '--https-client-auth=request',
        `--features=${FEATURES.join(',')}`,
      ],
      {
        env: {
          JAVA_OPTS_KC_HEAP: '-Xms64m -Xmx512m',
          KC_BOOTSTRAP_ADMIN_USERNAME: ADMIN.username,
          KC_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password,
        },
        ready: /Keycloak \S+ on JVM .* started in/,
        ports: [httpPort, httpsPort],
      },
    );
  let running: ServerProcess | undefined = await launch();

  async function stop(): Promise<void> {
    await running?.stop();
    running = undefined;
  }

  async function adminToken(): Promise<string> {
    const response = await fetch(`${url('http')}/realms/master/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'password', client_id: 'admin-cli', ...ADMIN }),
    });
    return ((await response.json()) as { access_token: string }).access_token;
  }

  async function admin(method: string, path: string, body?: unknown): Promise<unknown> {
    const response = await fetch(`${url('http')}/admin/realms/dx${path}`, {
      method,
      headers: { authorization: `Bearer ${await adminToken()}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }

  async function clientId(name: string): Promise<string> {
    const found = await admin('GET', `/clients?clientId=${encodeURIComponent(name)}`);
    const [client] = found as { id: string }[];
    if (client === undefined) throw new Error(`the realm has no client ${name}`);
    return client.id;
  }

  return {
    authority,
    caFile: file('ca.pem'),
    url,
    issuer: (transport) => `${url(transport)}/realms/dx`,
    credential: (transport) => ({
      authUrl: url(transport),
      ...(transport === 'https' ? { tls: { caFile: file('ca.pem') } } : {}),
    }),
    async keys() {
      return (await (await fetch(`${realmUrl}/protocol/openid-connect/certs`)).json()) as JSONWebKeySet;
    },
    admin,
    async addClient(representation) {
      await admin('POST', '/clients', {
        publicClient: false,
        serviceAccountsEnabled: true,
        standardFlowEnabled: false,
        fullScopeAllowed: false,
        ...representation,
      });
      return await clientId(String(representation['clientId']));
    },
    clientId,
    stop,
    async start() {
      running = await launch();
    },
    async close() {
      await stop();
      await rm(data, { recursive: true, force: true });
      await rm(directory, { recursive: true });
    },
  };
}
