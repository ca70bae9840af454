import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { grantIdentity } from '../../../src/broker/cache/token-cache.ts';
import type { CredentialSettings } from '../../../src/config/config.ts';
import { understandCredentials } from '../../../src/token/credentials.ts';
import { createCertificateAuthority } from '../../support/certificate-authority.ts';
import { credentialConfig } from '../../support/credential-config.ts';

const TOKEN_URL = 'https://login.example.com/token';

function identity(
  settings: Partial<CredentialSettings> = {},
  files: Readonly<Record<string, string>> = {},
  tokenUrl = TOKEN_URL,
): string | undefined {
  const config = credentialConfig({ tokenUrl, name: 'payments/orders', ...settings });
  const mounted = { client_id: 'shop', client_secret: 's3cret', ...files };
  const reading = understandCredentials(config, mounted);
  if (reading.state !== 'loaded') throw new Error(reading.detail);
  return grantIdentity(config, reading.credentials);
}

const pem = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();

describe('the identity of a grant', () => {
  it('does not depend on paths, timeouts or the order of settings', () => {
    const one = identity({ parameters: { a: '1', b: ['2', '3'] } });
    expect(identity({ parameters: { b: ['2', '3'], a: '1' }, directory: '/elsewhere' })).toBe(one);
    expect(identity({ parameters: { a: '1', b: ['2', '3'] }, requestTimeoutMs: 1 })).toBe(one);
  });

  it('differs with each setting by which the provider decides', () => {
    const all = [
      identity(),
      identity({ name: 'payments/other' }),
      identity({}, { client_id: 'another' }),
      identity({}, { client_secret: 'rotated' }),
      identity({ clientId: 'said' }),
      identity({ scope: 'read' }),
      identity({ scope: 'read write' }),
      identity({ audience: 'read' }),
      identity({ parameters: { resource: 'a' } }),
      identity({ parameters: { resource: ['a', 'b'] } }),
      identity({ tokenType: 'any' }),
      identity({ clientAuth: { method: 'client_secret_post' } }),
      identity({}, {}, 'https://login.example.com/other'),
    ];
    expect(new Set(all).size).toBe(all.length);
    expect(all).not.toContain(undefined);
  });

  it('differs with the private key and the certificate', () => {
    const authority = createCertificateAuthority('clients');
    const settings = {
      clientAuth: { method: 'private_key_jwt', keyFile: 'key.pem', keyId: 'the same' },
    } as const;
    const [one, other] = [pem(), pem()];
    expect(identity(settings, { 'key.pem': one })).toBe(identity(settings, { 'key.pem': one }));
    expect(identity(settings, { 'key.pem': one })).not.toBe(identity(settings, { 'key.pem': other }));
    const shown = () => {
      const { cert, key } = authority.issue('shop');
      return identity({ clientAuth: { method: 'tls_client_auth' } }, { 'tls.crt': cert, 'tls.key': key });
    };
    expect(shown()).not.toBe(shown());
  });

  it('differs with the key that signs assertions', () => {
    const grant = { type: 'jwt_bearer', kind: 'rfc7523', keyFile: 'key.pem', keyId: 'one' } as const;
    const signed = (text: string) => identity({ grant } as never, { 'key.pem': text });
    expect(signed(pem())).not.toBe(signed(pem()));
  });

  it('is undefined if the grant depends on more than its credentials', () => {
    const jwt = `${Buffer.from('{"alg":"none"}').toString('base64url')}.e30.c2ln`;
    const token_exchange = { type: 'token_exchange', subjectTokenFile: 'subject' };
    expect(identity({ grant: token_exchange } as never, { subject: 'a-token' })).toBeUndefined();
    const attested = { clientAuth: { method: 'kubernetes_jwt', tokenFile: 'token' } } as const;
    expect(identity(attested, { token: jwt })).toBeUndefined();
    const fixed = { grant: { type: 'static', tokenFile: 'token' } };
    expect(identity(fixed as never, { token: 'a-token' })).toBeUndefined();
  });
});
