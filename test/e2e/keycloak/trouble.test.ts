import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KEYCLOAK } from '../providers.ts';
import { describeProvider } from '../support/describe-provider.ts';
import { type AppAnswer, runSidecar, type SidecarUnderTest } from '../support/sidecar.ts';
import { startTraffic, tokenId, trafficUntilNewToken } from '../support/traffic.ts';
import { startUpstream, type VerifyToken, verifyByIntrospection, verifyByKeys } from '../support/upstream.ts';
import { type Keycloak, startKeycloak } from './keycloak.ts';

const statuses = (answers: readonly AppAnswer[]): number[] => [
  ...new Set(answers.map(({ status }) => status)),
];

describeProvider(KEYCLOAK, () => {
  let keycloak: Keycloak;
  beforeAll(async () => {
    keycloak = await startKeycloak();
  });
  afterAll(() => keycloak?.close());

  const byKeys = async (): Promise<VerifyToken> =>
    verifyByKeys(await keycloak.keys(), keycloak.issuer('http'));

  async function start(client_id: string, client_secret: string, verify: VerifyToken) {
    const upstream = await startUpstream(verify);
    const sidecar = await runSidecar({
      credential: keycloak.credential('http'),
      files: { client_id, client_secret },
      upstream,
    });
    return { sidecar, upstream };
  }

  describe('lifetimes', () => {
    it.each([
      ['shop-5s', 'shop-5s-secret', 5],
      ['shop-60s', 'shop-60s-secret', 60],
      ['shop', 'shop-secret', 300],
    ])('%s: renewal is planned within the lifetime', async (clientId, secret, lifetimeSeconds) => {
      const { sidecar } = await start(clientId, secret, await byKeys());
      expect((await sidecar.request()).status).toBe(200);
      let planned = sidecar.snapshot();
      // On a slow machine the next renewal is under way already, and none is planned until it is done.
      while (planned.renewalAtMs === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 10));
        planned = sidecar.snapshot();
      }
      const { requestedAtMs = 0, expiresAtMs = 0, renewalAtMs = 0 } = planned;
      // The token's own end is a whole second, and one that passes while Keycloak answers is one less in expires_in.
      expect(expiresAtMs - requestedAtMs).toBeGreaterThanOrEqual((lifetimeSeconds - 1) * 1000);
      expect(expiresAtMs - requestedAtMs).toBeLessThanOrEqual(lifetimeSeconds * 1000);
      expect(renewalAtMs).toBeGreaterThanOrEqual(requestedAtMs + 1000);
      expect(renewalAtMs).toBeLessThanOrEqual(requestedAtMs + lifetimeSeconds * 800);
    });

    it('tokens of 5 s are replaced, round after round, without a request that notices', async () => {
      const { sidecar, upstream } = await start('shop-5s', 'shop-5s-secret', await byKeys());
      const traffic = startTraffic(sidecar);
      const seen = new Set<string | undefined>();
      await traffic.until(({ body }) => seen.add(tokenId(body)).size === 4);
      expect(statuses(await traffic.stop())).toEqual([200]);
      expect(upstream.verdicts.every((verdict) => 'claims' in verdict)).toBe(true);
    });
  });

  describe('a secret that is regenerated while traffic flows', () => {
    async function regenerate(clientId: string): Promise<string> {
      const id = await keycloak.clientId(clientId);
      const answer = await keycloak.admin('POST', `/clients/${id}/client-secret`);
      return (answer as { value: string }).value;
    }

    async function addClient(clientId: string, lifetimeSeconds: number): Promise<void> {
      const attributes = { 'access.token.lifespan': `${lifetimeSeconds}` };
      await keycloak.addClient({ clientId, secret: 'first-secret', attributes });
    }

    async function allowOldSecrets(): Promise<void> {
      const configuration = {
        'expiration-period': 86_400,
        'rotated-expiration-period': 3600,
        'remaining-rotation-period': 3600,
      };
      await keycloak.admin('PUT', '/client-policies/profiles', {
        profiles: [{ name: 'grace', executors: [{ executor: 'secret-rotation', configuration }] }],
      });
      const condition = {
        condition: 'client-access-type',
        configuration: { type: ['confidential'] },
      };
      await keycloak.admin('PUT', '/client-policies/policies', {
        policies: [{ name: 'grace', enabled: true, conditions: [condition], profiles: ['grace'] }],
      });
    }

    it('without grace: the token in hand bridges the time until the new secret is mounted', async () => {
      await addClient('rotated', 20);
      const { sidecar } = await start('rotated', 'first-secret', await byKeys());
      const first = await sidecar.request();
      const traffic = startTraffic(sidecar);
      const secret = await regenerate('rotated');
      // The old secret is worth nothing any more: the renewal that comes now is refused, and nobody notices.
      await traffic.until(() => sidecar.grants().includes('scheduled rejected'));
      await sidecar.remount({ client_id: 'rotated', client_secret: secret });
      await traffic.until(({ body }) => tokenId(body) !== tokenId(first.body));
      expect(statuses(await traffic.stop())).toEqual([200]);
      expect(sidecar.grants()).toEqual(['startup success', 'scheduled rejected', 'rotation success']);
    });

    it('with the grace policy: the old secret goes on being accepted until the new one is mounted', async () => {
      await allowOldSecrets();
      await addClient('graceful', 5);
      const { sidecar } = await start('graceful', 'first-secret', await byKeys());
      const first = await sidecar.request();
      const secret = await regenerate('graceful');
      const renewed = await trafficUntilNewToken(sidecar, first);
      await sidecar.remount({ client_id: 'graceful', client_secret: secret });
      const traffic = startTraffic(sidecar);
      await traffic.until(() => sidecar.grants().includes('rotation success'));
      expect(statuses([...renewed, ...(await traffic.stop())])).toEqual([200]);
      expect(sidecar.grants().filter((grant) => !grant.endsWith('success'))).toEqual([]);
      expect(sidecar.grants()).toContain('scheduled success');
    });
  });

  it('tokens revoked before their end: the 401 of the upstream heals itself', async () => {
    const introspection = `${keycloak.issuer('http')}/protocol/openid-connect/token/introspect`;
    const verify = verifyByIntrospection(introspection, 'api', 'api-secret');
    const { sidecar, upstream } = await start('shop', 'shop-secret', verify);
    const traffic = startTraffic(sidecar);
    const first = await traffic.until(({ status }) => status === 200);
    const issuedAt = 'claims' in first.body ? (first.body.claims.iat ?? 0) : 0;
    // Revocation is by the second, and a token younger than one is not replaced.
    await traffic.until(() => Date.now() > (issuedAt + 2) * 1000);
    await keycloak.admin('PUT', '', { notBefore: issuedAt + 1 });
    await traffic.until(({ body }) => tokenId(body) !== tokenId(first.body));
    expect(statuses(await traffic.stop())).toEqual([200]);
    expect(upstream.verdicts.filter((verdict) => 'refused' in verdict)).toHaveLength(1);
    expect(sidecar.grants()).toEqual(['startup success', 'upstream_401 success']);
  });

  describe('a provider that is away for longer than a token lives', () => {
    const isOwnError = ({ status, error }: AppAnswer): boolean =>
      status === 503 && error === 'token_unavailable';

    async function outage(sidecar: SidecarUnderTest): Promise<readonly AppAnswer[]> {
      const traffic = startTraffic(sidecar);
      await traffic.until(({ status }) => status === 200);
      await keycloak.stop();
      await traffic.until(isOwnError);
      await keycloak.start();
      await traffic.until(({ status }) => status === 200);
      return await traffic.stop();
    }

    it('fails closed while it lasts, and heals without help', async () => {
      const { sidecar, upstream } = await start('shop-5s', 'shop-5s-secret', await byKeys());
      const answers = await outage(sidecar);
      expect(answers.filter((answer) => answer.status !== 200 && !isOwnError(answer))).toEqual([]);
      const changes = answers.filter(({ status }, index) => status !== answers[index - 1]?.status);
      expect(changes.map(({ status }) => status).filter((status) => status === 200).length).toBeGreaterThan(
        1,
      );
      // Whatever reached the upstream carried a token that was valid there and then.
      expect(upstream.verdicts.filter((verdict) => 'refused' in verdict)).toEqual([]);
      expect(sidecar.snapshot()).toMatchObject({ ready: true, consecutiveFailures: 0 });
    });
  });
});
