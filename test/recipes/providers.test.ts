import { createHash, generateKeyPairSync, type KeyObject, verify, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { readCredentials } from '../../src/token/credentials.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { temporaryFile } from '../wire/temporary-file.ts';
import { rsaCertificate } from './rsa-certificate.ts';
import { type Asked, type Provider, startProvider } from './stub-provider.ts';

const DOCUMENT = readFileSync(join(import.meta.dirname, '../../docs/how-to/providers.md'), 'utf8');

/** The YAML of each heading. */
const RECIPES = new Map(
  DOCUMENT.split(/^## /m)
    .slice(1)
    .map((section) => [
      section.slice(0, section.indexOf('\n')),
      /```yaml\n([\s\S]*?)```/.exec(section)?.[1] ?? '',
    ]),
);

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const certificate = rsaCertificate(rsa.privateKey, rsa.publicKey);
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const SECRET = { client_id: 'the-client', client_secret: 'the+secret' };
const TENANT = '11111111-2222-3333-4444-555555555555';
const ENTRA = `login.microsoftonline.com/${TENANT}/oauth2/v2.0/token`;
const SERVICE_ACCOUNT = `e30.${Buffer.from('{"sub":"system:serviceaccount:shop:api"}').toString('base64url')}.c2ln`;

interface Assertion {
  readonly header: Record<string, unknown>;
  readonly claims: Record<string, unknown>;
}

/** What a JWT says, if the RSA key of the recipe has signed it. */
function signed(jwt: string | null, padding: 'RS256' | 'PS256' = 'RS256'): Assertion | undefined {
  const [header = '', claims = '', signature = ''] = (jwt ?? '').split('.');
  const key: KeyObject = rsa.publicKey;
  const options = padding === 'RS256' ? key : { key, padding: 6, saltLength: 32 };
  if (!verify('sha256', Buffer.from(`${header}.${claims}`), options, Buffer.from(signature, 'base64url'))) {
    return undefined;
  }
  const read = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString());
  return { header: read(header), claims: read(claims) };
}

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const isPost = ({ method, contentType }: Asked) =>
  method === 'POST' && contentType === 'application/x-www-form-urlencoded';
const has = ({ form }: Asked, expected: Record<string, string>) =>
  Object.entries(expected).every(([name, value]) => form.get(name) === value);
const granted = (access_token: string, rest: Record<string, unknown> = {}) => ({
  status: 200,
  json: { access_token, token_type: 'Bearer', expires_in: 3600, ...rest },
});

interface Case {
  readonly host: string;
  readonly files: Record<string, string>;
  readonly provider: Provider;
  readonly token: string;
  /** Seconds. */
  readonly lifetime: number;
}

const CASES: Readonly<Record<string, Case>> = {
  'Entra ID, with a secret': {
    host: 'login.microsoftonline.com',
    files: SECRET,
    provider: (asked) =>
      isPost(asked) &&
      asked.place === ENTRA &&
      has(asked, { grant_type: 'client_credentials', ...SECRET, scope: 'api://payments/.default' })
        ? granted('eyJ-entra', { expires_in: 3599, ext_expires_in: 3599 })
        : undefined,
    token: 'eyJ-entra',
    lifetime: 3599,
  },
  'Entra ID, with a certificate': {
    host: 'login.microsoftonline.com',
    files: { client_id: 'the-client', 'tls.key': pem, 'tls.crt': certificate },
    provider(asked) {
      const assertion = signed(asked.form.get('client_assertion'), 'PS256');
      const thumbprint = createHash('sha256')
        .update(new X509Certificate(certificate).raw)
        .digest('base64url');
      const known =
        assertion?.header['alg'] === 'PS256' &&
        assertion.header['x5t#S256'] === thumbprint &&
        assertion.claims['aud'] === `https://${ENTRA}` &&
        assertion.claims['iss'] === 'the-client' &&
        assertion.claims['sub'] === 'the-client' &&
        typeof assertion.claims['jti'] === 'string';
      const rest = { client_assertion_type: ASSERTION_TYPE, scope: 'api://payments/.default' };
      return known && has(asked, rest) ? granted('eyJ-entra-certificate') : undefined;
    },
    token: 'eyJ-entra-certificate',
    lifetime: 3600,
  },
  'Entra ID, with a federated token': {
    host: 'login.microsoftonline.com',
    files: { token: SERVICE_ACCOUNT },
    provider: (asked) =>
      has(asked, {
        client_id: '66666666-7777-8888-9999-000000000000',
        client_assertion: SERVICE_ACCOUNT,
        client_assertion_type: ASSERTION_TYPE,
        scope: 'api://payments/.default',
      })
        ? granted('eyJ-entra-federated')
        : undefined,
    token: 'eyJ-entra-federated',
    lifetime: 3600,
  },
  Okta: {
    host: 'example.okta.com',
    files: { client_id: 'the-client', private_key: pem },
    provider(asked) {
      const issuer = 'https://example.okta.com/oauth2/default';
      if (asked.place.endsWith('/.well-known/openid-configuration')) {
        const token_endpoint_auth_methods_supported = ['private_key_jwt'];
        return {
          status: 200,
          json: { issuer, token_endpoint: `${issuer}/v1/token`, token_endpoint_auth_methods_supported },
        };
      }
      const assertion = signed(asked.form.get('client_assertion'));
      const known =
        assertion?.header['kid'] === 'payments-1' && assertion.claims['aud'] === `${issuer}/v1/token`;
      const isToken = asked.place === 'example.okta.com/oauth2/default/v1/token';
      return known && isToken && has(asked, { scope: 'payments.read' }) ? granted('eyJ-okta') : undefined;
    },
    token: 'eyJ-okta',
    lifetime: 3600,
  },
  Auth0: {
    host: 'example.eu.auth0.com',
    files: SECRET,
    provider: (asked) =>
      asked.place === 'example.eu.auth0.com/oauth/token' &&
      has(asked, { ...SECRET, audience: 'https://payments.example.com/' })
        ? granted('eyJ-auth0', { expires_in: 86_400 })
        : undefined,
    token: 'eyJ-auth0',
    lifetime: 86_400,
  },
  Cognito: {
    host: 'example.auth.eu-central-1.amazoncognito.com',
    files: { client_id: 'the-client', client_secret: 'thesecret' },
    provider: (asked) =>
      isPost(asked) &&
      asked.authorization === basic('the-client:thesecret') &&
      has(asked, { scope: 'payments/read' })
        ? granted('eyJ-cognito')
        : undefined,
    token: 'eyJ-cognito',
    lifetime: 3600,
  },
  Keycloak: {
    host: 'sso.example.com',
    files: SECRET,
    provider: (asked) =>
      asked.place === 'sso.example.com/realms/shop/protocol/openid-connect/token' &&
      asked.authorization === basic('the-client:the%2Bsecret')
        ? granted('eyJ-keycloak', { expires_in: 300, 'not-before-policy': 0, scope: 'profile email' })
        : undefined,
    token: 'eyJ-keycloak',
    lifetime: 300,
  },
  Ping: {
    host: 'auth.pingone.eu',
    files: { client_id: 'the-client', client_secret: 'thesecret' },
    provider(asked) {
      const issuer = `https://auth.pingone.eu/${TENANT}/as`;
      if (asked.place.endsWith('/.well-known/openid-configuration')) {
        return { status: 200, json: { issuer, token_endpoint: `${issuer}/token` } };
      }
      const known = asked.authorization === basic('the-client:thesecret');
      return known &&
        asked.place === `auth.pingone.eu/${TENANT}/as/token` &&
        has(asked, { scope: 'payments:read' })
        ? granted('eyJ-ping')
        : undefined;
    },
    token: 'eyJ-ping',
    lifetime: 3600,
  },
  Salesforce: {
    host: 'example.my.salesforce.com',
    files: { client_id: 'the-client', private_key: pem },
    provider(asked) {
      const { claims } = signed(asked.form.get('assertion')) ?? {};
      const known =
        claims?.['iss'] === 'the-client' &&
        claims['sub'] === 'integration@example.com' &&
        claims['aud'] === 'https://login.salesforce.com' &&
        asked.form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer';
      const json = {
        access_token: '00Dxx!AQEAQ',
        scope: 'api',
        instance_url: 'https://example.my.salesforce.com',
        id: 'https://login.salesforce.com/id/00Dxx/005xx',
        token_type: 'Bearer',
      };
      return known ? { status: 200, json } : undefined;
    },
    token: '00Dxx!AQEAQ',
    lifetime: 900,
  },
  Google: {
    host: 'oauth2.googleapis.com',
    files: {
      'key.json': JSON.stringify({
        type: 'service_account',
        private_key_id: 'key-1',
        private_key: pem,
        client_email: 'shop@project.iam.gserviceaccount.com',
        token_uri: 'https://oauth2.googleapis.com/token',
      }),
    },
    provider(asked) {
      const { header, claims } = signed(asked.form.get('assertion')) ?? {};
      const known =
        header?.['kid'] === 'key-1' &&
        claims?.['iss'] === 'shop@project.iam.gserviceaccount.com' &&
        claims['aud'] === 'https://oauth2.googleapis.com/token' &&
        claims['scope'] === 'https://www.googleapis.com/auth/cloud-platform';
      return known ? granted('ya29.c.google', { expires_in: 3599 }) : undefined;
    },
    token: 'ya29.c.google',
    lifetime: 3599,
  },
  'GitHub Apps': {
    host: 'api.github.com',
    files: { client_id: 'Iv23li', private_key: pem },
    provider(asked) {
      const { claims } = signed(asked.authorization.replace(/^Bearer /, '')) ?? {};
      const wanted = { repositories: ['shop'], permissions: { contents: 'read' } };
      const known =
        claims?.['iss'] === 'Iv23li' &&
        // GitHub answers 403 to who does not name a program.
        asked.userAgent !== '' &&
        asked.place === 'api.github.com/app/installations/12345678/access_tokens' &&
        asked.accept === 'application/vnd.github+json' &&
        asked.body === JSON.stringify(wanted);
      const expires_at = new Date(Date.now() + 3_600_000).toISOString();
      return known ? { status: 201, json: { token: 'ghs_github', expires_at, ...wanted } } : undefined;
    },
    token: 'ghs_github',
    lifetime: 3600,
  },
  Zoom: {
    host: 'zoom.us',
    files: { client_id: 'the-client', client_secret: 'thesecret' },
    provider: (asked) =>
      asked.method === 'POST' &&
      asked.place ===
        'zoom.us/oauth/token?grant_type=account_credentials&account_id=Ab1cD2eF3gH4iJ5kL6mN7o' &&
      asked.authorization === basic('the-client:thesecret') &&
      asked.form.get('grant_type') === null
        ? granted('eyJ-zoom')
        : undefined,
    token: 'eyJ-zoom',
    lifetime: 3600,
  },
};

it('every recipe is run, and every one that is run is there', () => {
  expect([...RECIPES.keys()]).toEqual(Object.keys(CASES));
});

/** The recipe as it stands, reached by way of a proxy, so that its hosts are the real ones. */
async function follow(recipe: string, { host, files, provider }: Case) {
  const stub = await startProvider(host, provider);
  const secret = await mountSecret(files);
  const caFile = await temporaryFile('ca.crt', stub.ca);
  const settings = parse(RECIPES.get(recipe) ?? '') as { credentials: Record<string, unknown>[] };
  const surroundings = { dir: secret.directory, tls: { caFile }, egressProxy: { url: stub.proxy } };
  const path = await temporaryFile(
    'token-sidecar.json',
    JSON.stringify({
      credentials: settings.credentials.map((credential) => ({ ...credential, ...surroundings })),
      routes: [{ name: 'api', upstream: 'https://api.example.com' }],
    }),
  );
  const { credentials } = await loadConfig({ config: { key: '--config', text: path } });
  const [config] = credentials;
  if (config === undefined) throw new Error(`${recipe} has no credential`);
  const reading = await readCredentials(config);
  if (reading.state !== 'loaded') throw new Error(reading.detail);
  const endpoint = createTokenEndpoint(config, systemClock);
  onTestFinished(() => endpoint.close());
  return { stub, outcome: await endpoint.requestToken(reading.credentials, new AbortController().signal) };
}

describe('as it stands, the recipe gets a token of', () => {
  it.each(Object.entries(CASES))('%s', async (recipe, one) => {
    const { outcome } = await follow(recipe, one);
    expect(outcome).toMatchObject({ result: 'success', accessToken: one.token });
    if (outcome.result !== 'success') return;
    // GitHub's says when it ends, to the second.
    expect(outcome.lifetimeMs / 1000).toBeGreaterThan(one.lifetime - 3);
    expect(outcome.lifetimeMs / 1000).toBeLessThanOrEqual(one.lifetime);
  });
});

it('the servers refuse what the providers would refuse', async () => {
  const { outcome } = await follow('Cognito', {
    ...(CASES['Cognito'] as Case),
    files: { client_id: 'the-client', client_secret: 'another' },
  });
  expect(outcome).toMatchObject({ result: 'rejected' });
});
