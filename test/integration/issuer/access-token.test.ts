import { createLocalJWKSet, jwtVerify, type ProtectedHeaderParameters } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { defineClients } from '../../../src/issuer/clients.ts';
import type { startIssuer } from '../../../src/issuer/issuer.ts';
import {
  createKeyRing,
  generateSigningKey,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
} from '../../../src/issuer/keys.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { askForToken, type RunningIssuer, runIssuer, SHOP } from './running-issuer.ts';

type IssuerOptions = Parameters<typeof startIssuer>[0];

type ClientDefinition = Parameters<typeof defineClients>[0][number];

const GRANT = 'grant_type=client_credentials';

async function run(
  clients?: readonly ClientDefinition[],
  options?: Partial<IssuerOptions> & { algorithm?: SigningAlgorithm },
): Promise<RunningIssuer> {
  const issuer = await runIssuer(clients, options);
  onTestFinished(async () => await issuer.close());
  return issuer;
}

async function tokenOf(issuer: RunningIssuer, body = GRANT): Promise<string> {
  const { status, json } = await askForToken(issuer.tokenUrl, { body });
  expect(status).toBe(200);
  return String(json['access_token']);
}

describe('an access token', () => {
  it.each(SIGNING_ALGORITHMS)('signed with %s verifies against the public keys', async (algorithm) => {
    const issuer = await run([SHOP], { algorithm });
    const { protectedHeader } = await jwtVerify(await tokenOf(issuer), createLocalJWKSet(issuer.jwks()), {
      issuer: issuer.issuer,
      audience: 'payments',
    });
    expect(protectedHeader).toEqual<ProtectedHeaderParameters>({
      alg: algorithm,
      kid: issuer.keys.current().keyId,
      typ: 'JWT',
    });
  });

  it('says who may do what, until when', async () => {
    const issuer = await run();
    const before = Math.floor(Date.now() / 1000);
    const token = await tokenOf(issuer);
    const { payload } = await jwtVerify(token, createLocalJWKSet(issuer.jwks()));
    expect(payload).toEqual({
      iss: `http://127.0.0.1:${issuer.address.port}/realms/dx`,
      sub: 'shop',
      azp: 'shop',
      client_id: 'shop',
      aud: ['payments', 'orders'],
      scope: 'read write',
      iat: expect.any(Number),
      exp: (payload.iat ?? 0) + 60,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(payload.iat).toBeGreaterThanOrEqual(before);
    expect(payload.iat).toBeLessThanOrEqual(Date.now() / 1000);
  });

  it('is never the same twice', async () => {
    const issuer = await run();
    expect(await tokenOf(issuer)).not.toBe(await tokenOf(issuer));
  });

  it.each([
    ['audience=orders', 'orders'],
    ['resource=payments', 'payments'],
    ['audience=orders&resource=orders', 'orders'],
    ['audience=orders&resource=payments', ['orders', 'payments']],
  ])('asked for with %s is for %j', async (parameters, audience) => {
    const issuer = await run();
    const token = await tokenOf(issuer, `${GRANT}&${parameters}`);
    const { payload } = await jwtVerify(token, createLocalJWKSet(issuer.jwks()));
    expect(payload.aud).toEqual(audience);
  });

  it('of a client without an audience is for the issuer itself', async () => {
    const issuer = await run([{ clientId: 'shop', clientSecret: 's3cret' }]);
    const { payload } = await jwtVerify(await tokenOf(issuer), createLocalJWKSet(issuer.jwks()));
    expect(payload.aud).toBe(issuer.issuer);
  });
});

describe('a rotation of the signing key', () => {
  it('signs with the new key at once and keeps the old public key until its tokens are dead', async () => {
    const clock = new ManualClock();
    const [old, next] = [await generateSigningKey('ES256'), await generateSigningKey('ES256')];
    const keys = createKeyRing(old, clock);
    const issuer = await run([SHOP], { keys, clock });
    const before = await tokenOf(issuer);

    keys.rotate(next);
    const after = await tokenOf(issuer);
    const currentDate = new Date(clock.now().wallMs);
    for (const token of [before, after]) {
      await jwtVerify(token, createLocalJWKSet(keys.jwks()), { currentDate });
    }
    expect(keys.jwks().keys.map(({ kid }) => kid)).toEqual([next.keyId, old.keyId]);

    await clock.advance(60_000);
    expect(keys.jwks().keys).toHaveLength(2);
    await clock.advance(60_000);
    expect(keys.jwks().keys.map(({ kid }) => kid)).toEqual([next.keyId]);
  });
});
