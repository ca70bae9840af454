import { generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { runSidecarProcess } from '../support/sidecar-process.ts';
import { startUpstream, verifyByKeys } from '../support/upstream.ts';
import type { Keycloak } from './keycloak.ts';

const EXCHANGER = { client_id: 'exchanger', client_secret: 'secret-of-the-exchanger' };
const FRONT = { client_id: 'front', client_secret: 'secret-of-the-front' };

/** Who logs in at the front end, with whose tokens the requests come. */
const USERS = ['ann', 'bob'] as const;

/** Keycloak's standard token exchange (RFC 8693). @param running a server that is started once for all of its tests. */
export function tokenExchangeTests(running: () => Keycloak): void {
  describe('token_exchange', () => {
    let keycloak: Keycloak;
    beforeAll(async () => {
      keycloak = running();
      // Only who is in the audience of a token may exchange it.
      const audience = {
        name: 'exchanger',
        protocol: 'openid-connect',
        protocolMapper: 'oidc-audience-mapper',
        config: { 'included.client.audience': EXCHANGER.client_id, 'access.token.claim': 'true' },
      };
      await keycloak.addClient({
        clientId: EXCHANGER.client_id,
        secret: EXCHANGER.client_secret,
        attributes: { 'standard.token.exchange.enabled': 'true' },
      });
      await keycloak.addClient({
        clientId: FRONT.client_id,
        secret: FRONT.client_secret,
        directAccessGrantsEnabled: true,
        protocolMappers: [audience],
      });
      for (const username of USERS) {
        await keycloak.admin('POST', '/users', {
          username,
          enabled: true,
          emailVerified: true,
          email: `${username}@example.com`,
          firstName: username,
          lastName: username,
          credentials: [{ type: 'password', value: `password-of-${username}`, temporary: false }],
        });
      }
    });

    /** A user's token, as the front end has it. */
    async function tokenOf(username: string): Promise<string> {
      const response = await fetch(`${keycloak.issuer('http')}/protocol/openid-connect/token`, {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'password',
          username,
          password: `password-of-${username}`,
          scope: 'openid',
          ...FRONT,
        }),
      });
      const { access_token: token } = (await response.json()) as { readonly access_token?: string };
      if (token === undefined) throw new Error(`${username} gets no token: ${response.status}`);
      return token;
    }

    async function start(tokenExchange: object, files: Readonly<Record<string, string>>) {
      const upstream = await startUpstream(verifyByKeys(await keycloak.keys(), keycloak.issuer('http')));
      const sidecar = await runSidecarProcess({
        credential: { ...keycloak.credential('http'), grant: 'token_exchange', tokenExchange },
        files: { ...EXCHANGER, ...files },
        upstream,
      });
      return { sidecar, upstream };
    }

    const exchanged = (username: string) => ({
      status: 200,
      body: { claims: { preferred_username: username, azp: EXCHANGER.client_id } },
    });

    it('a mounted token is exchanged', async () => {
      const { sidecar } = await start(
        { subjectTokenType: 'access_token' },
        { subject_token: await tokenOf('ann') },
      );
      expect(await sidecar.request()).toMatchObject(exchanged('ann'));
      expect(sidecar.grants()).toEqual(['success']);
    });

    it('the token of each request is exchanged, and nobody gets what is for another', async () => {
      const { sidecar } = await start({ subjectTokenFrom: 'request' }, {});
      const tokens = new Map<string, string>();
      for (const username of USERS) tokens.set(username, await tokenOf(username));
      const asked = Array.from({ length: 12 }, (_, index) => USERS[index % USERS.length] ?? 'ann');
      const answers = await Promise.all(
        asked.map((username) => sidecar.request(`Bearer ${tokens.get(username)}`)),
      );
      expect(answers).toMatchObject(asked.map(exchanged));
      // Once for each: the others had theirs from memory.
      const ids = answers.map(({ body }) => ('claims' in body ? body.claims.jti : undefined));
      expect(new Set(ids).size).toBe(USERS.length);
    });

    it('a request without a token, or with one that is none of the realm, gets nothing', async () => {
      const { sidecar, upstream } = await start({ subjectTokenFrom: 'request' }, {});
      expect(await sidecar.request()).toMatchObject({ status: 403, error: 'subject_token_missing' });
      const forged = await new SignJWT({ azp: FRONT.client_id })
        .setProtectedHeader({ alg: 'RS256' })
        .setIssuer(keycloak.issuer('http'))
        .setSubject('ann')
        .setAudience(EXCHANGER.client_id)
        .setIssuedAt()
        .setExpirationTime('60s')
        .sign(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);
      const refused = await sidecar.request(`Bearer ${forged}`);
      expect(refused).toMatchObject({ status: 403, error: 'subject_token_refused' });
      expect(await sidecar.request(`Bearer ${await tokenOf('bob')}`)).toMatchObject(exchanged('bob'));
      expect(upstream.verdicts).toHaveLength(1);
    });
  });
}
