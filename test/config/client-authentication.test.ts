import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { clientAuthenticationSettings } from '../../src/config/client-authentication.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ConfigurationError } from '../../src/platform/problems.ts';

function load(credential: Record<string, unknown>) {
  const directory = mkdtempSync(join(tmpdir(), 'token-sidecar-config-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'token-sidecar.json');
  const text = {
    credentials: [{ name: 'default', authUrl: 'https://sso', ...credential }],
    routes: [{ name: 'a', upstream: 'https://a' }],
  };
  writeFileSync(path, JSON.stringify(text));
  return loadConfig({ config: { key: '--config', text: path } });
}

const clientAuthOf = async (credential: Record<string, unknown>) =>
  (await load(credential)).credentials[0]?.clientAuth;

async function problemsOf(credential: Record<string, unknown>): Promise<string[]> {
  const error = await load(credential).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ConfigurationError);
  return (error as ConfigurationError).message.split('\n');
}

describe('each method has its settings', () => {
  it.each([
    [{}, { method: 'client_secret_basic', encoding: 'form' }],
    [{ basicEncoding: 'raw' }, { method: 'client_secret_basic', encoding: 'raw' }],
    [{ clientAuth: 'client_secret_post' }, { method: 'client_secret_post' }],
    [{ clientAuth: 'private_key_jwt' }, { method: 'private_key_jwt', keyFile: 'private_key' }],
    [
      {
        clientAuth: 'private_key_jwt',
        assertion: { keyFile: 'tls.key', keyId: 'k', audience: 'https://sso/realms/dx' },
      },
      { method: 'private_key_jwt', keyFile: 'tls.key', keyId: 'k', audience: 'https://sso/realms/dx' },
    ],
    [
      { clientAuth: 'private_key_jwt', assertion: { certificateFile: 'tls.crt', algorithm: 'PS256' } },
      { method: 'private_key_jwt', keyFile: 'private_key', certificateFile: 'tls.crt', algorithm: 'PS256' },
    ],
    [{ clientAuth: 'tls_client_auth' }, { method: 'tls_client_auth' }],
    [{ clientAuth: 'kubernetes_jwt' }, { method: 'kubernetes_jwt', tokenFile: 'token' }],
    [
      { clientAuth: 'kubernetes_jwt', assertion: { tokenFile: 'keycloak' } },
      { method: 'kubernetes_jwt', tokenFile: 'keycloak' },
    ],
  ])('%o', async (credential, expected) => {
    expect(await clientAuthOf(credential)).toEqual(expected);
  });

  it('clientId stands for the file client_id', async () => {
    expect((await load({ clientId: 'shop' })).credentials[0]?.clientId).toBe('shop');
  });
});

describe('what does not fit', () => {
  it('is a setting of another method, each one reported', async () => {
    const assertion = { keyFile: 'a', keyId: 'b', audience: 'c', tokenFile: 'd' };
    expect(await problemsOf({ clientAuth: 'tls_client_auth', basicEncoding: 'raw', assertion })).toEqual([
      'credentials[0].basicEncoding: "raw": expected nothing with clientAuth tls_client_auth: it belongs to client_secret_basic',
      'credentials[0].assertion.keyFile: "a": expected nothing with clientAuth tls_client_auth: it belongs to private_key_jwt',
      'credentials[0].assertion.keyId: "b": expected nothing with clientAuth tls_client_auth: it belongs to private_key_jwt',
      'credentials[0].assertion.audience: "c": expected nothing with clientAuth tls_client_auth: it belongs to private_key_jwt',
      'credentials[0].assertion.tokenFile: "d": expected nothing with clientAuth tls_client_auth: it belongs to kubernetes_jwt',
    ]);
  });

  it.each(Object.keys(clientAuthenticationSettings.assertion.wrapped.entries))(
    'is assertion.%s with a method that has no assertion',
    async (setting) => {
      const assertion = { [setting]: setting === 'algorithm' ? 'ES256' : 'a' };
      expect(await problemsOf({ clientAuth: 'client_secret_post', assertion })).toEqual([
        expect.stringMatching(`^credentials\\[0\\].assertion.${setting}: .*: it belongs to `),
      ]);
    },
  );

  it('is a certificate without TLS', async () => {
    const [problem] = await problemsOf({
      clientAuth: 'tls_client_auth',
      authUrl: undefined,
      tokenUrl: 'http://localhost/token',
    });
    expect(problem).toBe(
      'credentials[0].clientAuth: "tls_client_auth": expected a method that works over http, or an https token endpoint instead of http://localhost/token',
    );
  });

  it.each([
    [
      'an unknown method',
      { clientAuth: 'basic' },
      /clientAuth: "basic": expected one of client_secret_basic,/,
    ],
    [
      'a path outside the directory',
      { clientAuth: 'private_key_jwt', assertion: { keyFile: '../key' } },
      /assertion\.keyFile: "\.\.\/key": expected a file name in dir/,
    ],
    [
      'the directory itself',
      { clientAuth: 'kubernetes_jwt', assertion: { tokenFile: '.' } },
      /assertion\.tokenFile: "\.": expected a file name in dir/,
    ],
    [
      'an assertion among the parameters',
      { parameters: { client_assertion: 'x' } },
      /parameters\.client_assertion: expected a parameter that has no setting of its own/,
    ],
    ['an unknown key', { assertion: { keyfile: 'x' } }, /assertion\.keyfile: .*did you mean "keyFile"/],
  ])('%s', async (_name, credential, problem) => {
    expect((await problemsOf(credential)).join('\n')).toMatch(problem);
  });
});
