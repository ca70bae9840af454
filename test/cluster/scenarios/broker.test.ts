import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apply, create, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { type Answer, anHourOld, ask, serviceAccountToken } from '../support/asking.ts';
import {
  expectNoFailure,
  killReplica,
  readyReplicas,
  replicasOf,
  restart,
  scale,
  totalOf,
} from '../support/faults.ts';
import {
  clientSecret,
  deleteNamespace,
  ISSUER,
  installChart,
  NAMESPACE,
  namespace,
  provideRelease,
  RELEASE,
} from '../support/release.ts';
import { inCluster } from '../support/scenario.ts';
import { NO_NODE } from '../support/unscheduled-pods.ts';
import {
  API_URL,
  callingTemplate,
  hasSidecar,
  metricOf,
  type Pod,
  protectedApi,
  readyPods,
} from '../support/workload.ts';

const SHOP = 'brokered';
const ELSEWHERE = 'not-brokered';
const SECRET = 'orders-oauth';
const AUDIENCE = 'token-sidecar-broker';

/** As many as start within a minute on two busy cores; another number by the variable PODS. */
const PODS = Number(process.env['PODS'] ?? 24);
const START_SECONDS = 60 + 4 * PODS;

/** Long enough that a token outlives the outage, short enough that each is renewed once. */
const TOKEN_LIFETIME_SECONDS = 90;

/** It takes some fifteen, and as long again until whoever was told to wait comes back. */
const MAX_OUTAGE_SECONDS = 35;

/** The provider's key outlives it: with another one it would take every token back, as an outage does not. */
const SIGNING_KEY = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'issuer-signing-key', namespace: NAMESPACE },
  stringData: {
    'signing-key.pem': generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    }).privateKey,
  },
};

const VALUES = {
  'issuer.signingKey.existingSecret': SIGNING_KEY.metadata.name,
  'crds.enabled': true,
  'injector.profiles.enabled': true,
  'broker.enabled': true,
  'broker.secrets': [SECRET],
  'issuer.tokenLifetime': `${TOKEN_LIFETIME_SECONDS}s`,
};

const PROFILE = {
  apiVersion: 'token-sidecar.dev/v1alpha1',
  kind: 'ClusterTokenProfile',
  metadata: { name: 'orders' },
  spec: {
    namespaces: { names: [SHOP] },
    credentials: [
      {
        via: 'broker',
        authUrl: ISSUER,
        allowInsecureTokenUrl: true,
        audience: 'api',
        secret: { name: SECRET },
      },
    ],
    routes: [{ upstream: API_URL.replace('SHOP', SHOP) }],
  },
};

/** Over all replicas. */
async function sumOf(series: RegExp): Promise<number> {
  const counts = await Promise.all((await replicasOf('broker')).map((replica) => metricOf(replica, series)));
  return counts.reduce<number>((sum, count) => sum + (count ?? 0), 0);
}

const grants = (): Promise<number> => sumOf(/^token_sidecar_token_refresh_total\{.*result="success"/);

inCluster('the broker', () => {
  let ca = '';
  let pods: readonly Pod[] = [];
  let deleted: { token: string; at: number };

  beforeAll(async () => {
    await provideRelease();
    await apply(namespace(SHOP), namespace(ELSEWHERE), ...protectedApi(SHOP));
    await apply(clientSecret(NAMESPACE, 'first', SECRET), SIGNING_KEY);
    await installChart(VALUES);
    await apply(PROFILE);
    const { data } = await get<{ data: Readonly<Record<string, string>> }>(
      ...(['secret', `${RELEASE}-broker-certificate`, '-n', NAMESPACE] as const),
    );
    ca = Buffer.from(data['ca.crt'] ?? '', 'base64').toString('utf8');
    await kubectl('-n', SHOP, 'rollout', 'status', 'deployment/api', '--timeout=120s');
  });
  afterAll(async () => {
    await kubectl('delete', 'clustertokenprofile', 'orders', '--ignore-not-found');
    await deleteNamespace(SHOP);
    await deleteNamespace(ELSEWHERE);
  });

  /** A pod that no node takes: its account can be shown for as long as it is there. */
  const boundToken = async (inNamespace: string, name: string, audience = AUDIENCE): Promise<string> => {
    const { metadata } = await create<{ metadata: { name: string; uid: string } }>({
      apiVersion: 'v1',
      kind: 'Pod',
      ...callingTemplate(name, {}, {}, NO_NODE),
      metadata: { name, namespace: inNamespace },
    });
    return serviceAccountToken({ namespace: inNamespace, audience, pod: metadata });
  };

  const asking = (token: string): Promise<Answer> =>
    ask({
      service: `${NAMESPACE}/${RELEASE}-broker`,
      port: 15_084,
      path: '/token/orders/orders',
      ca,
      form: {
        grant_type: 'client_credentials',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: token,
      },
    });

  const refusal = async (token: string): Promise<readonly [number, string]> => {
    const { status, body } = await asking(token);
    return [status, (JSON.parse(body) as { error: string }).error];
  };

  it(
    `serves ${PODS} pods by a grant for each replica, and there is no Secret in their namespace`,
    async () => {
      await readyReplicas('broker', 2);
      await apply({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'app', namespace: SHOP },
        spec: {
          replicas: PODS,
          selector: { matchLabels: { app: 'app' } },
          template: callingTemplate(
            'app',
            { 'token-sidecar.dev/inject': 'true', 'token-sidecar.dev/profile': 'orders' },
            { INTERVAL_MS: '1000' },
          ),
        },
      });
      pods = await readyPods(SHOP, 'app', PODS, START_SECONDS);
      expect(pods.every(hasSidecar)).toBe(true);
      const { items } = await get<{ items: readonly object[] }>('secrets', '-n', SHOP);
      expect(items).toEqual([]);
      await expectNoFailure(pods.slice(0, 5), 3);
      expect((await totalOf(pods)).failures).toEqual([]);
      // One a replica, and those by which it was renewed, at half of its life at the soonest, while the pods were starting.
      const renewals = Math.ceil((2 * START_SECONDS) / TOKEN_LIFETIME_SECONDS);
      expect(await grants()).toBeLessThanOrEqual(2 * (1 + renewals));
    },
    1000 * (START_SECONDS + 60),
  );

  it('gives a token to a pod that the profile admits', async () => {
    const { status, body } = await asking(await boundToken(SHOP, 'asker'));
    expect(status).toBe(200);
    const { expires_in: left } = JSON.parse(body) as { expires_in: number };
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(TOKEN_LIFETIME_SECONDS);
  });

  it('refuses a namespace that no profile admits', async () => {
    expect(await refusal(await boundToken(ELSEWHERE, 'asker'))).toEqual([400, 'unauthorized_client']);
  });

  it('refuses a token of another audience', async () => {
    expect(await refusal(await boundToken(SHOP, 'other-audience', 'vault'))).toEqual([401, 'invalid_client']);
  });

  it('refuses a token that has expired, although the cluster has signed it', async () => {
    const token = await boundToken(SHOP, 'expired');
    expect((await asking(token)).status).toBe(200);
    expect(await refusal(anHourOld(token))).toEqual([401, 'invalid_client']);
  });

  it('refuses the token of a pod that is deleted', async () => {
    const token = await boundToken(SHOP, 'never-asked');
    const known = await boundToken(SHOP, 'asked-before');
    expect((await asking(known)).status).toBe(200);
    await kubectl('-n', SHOP, 'delete', 'pod', 'never-asked', 'asked-before', '--grace-period=0', '--force');
    deleted = { token: known, at: Date.now() };
    expect(await refusal(token)).toEqual([401, 'invalid_client']);
  });

  it('says why in its figures', async () => {
    for (const reason of ['audience', 'expired', 'revoked']) {
      const series = new RegExp(`^token_sidecar_caller_verdicts_total\\{.*reason="${reason}"`);
      expect(await sumOf(series), reason).toBeGreaterThanOrEqual(1);
    }
  });

  it('a replica that is killed costs no request', async () => {
    const [replica] = await readyReplicas('broker', 2);
    await killReplica(replica as Pod);
    const answered = await eventually('another answers', 30, async () => {
      const { status } = await asking(await serviceAccountToken({ namespace: SHOP, audience: AUDIENCE }));
      return status === 200;
    });
    expect(answered).toBe(true);
    await readyReplicas('broker', 2);
    await expectNoFailure(pods.slice(0, 5), 3);
    expect((await totalOf(pods)).failures).toEqual([]);
  });

  it('neither does a rolling upgrade', async () => {
    const before = (await replicasOf('broker')).map(({ metadata }) => metadata.name);
    await installChart({ ...VALUES, 'broker.logLevel': 'debug' });
    const after = (await readyReplicas('broker', 2)).map(({ metadata }) => metadata.name);
    expect(after.filter((name) => before.includes(name))).toEqual([]);
    expect((await totalOf(pods)).failures).toEqual([]);
  });

  it('nor does a provider that is away and returns, while tokens live', async () => {
    // Every replica gets a token that is new, and every pod by its next renewal.
    await restart('broker');
    const token = await boundToken(SHOP, 'after-the-outage');
    await eventually('both replicas hold a token', 60, async () => {
      await asking(token);
      const held = await Promise.all(
        (await replicasOf('broker')).map((replica) => metricOf(replica, /^token_sidecar_token_ready\{/)),
      );
      return held.length === 2 && held.every((ready) => ready === 1);
    });
    await eventually('the tokens of all pods outlive the outage', 2 * TOKEN_LIFETIME_SECONDS, async () => {
      const ends = await Promise.all(
        pods.map((pod) => metricOf(pod, /^token_sidecar_token_expiry_timestamp_seconds\{/)),
      );
      const left = Math.min(...ends.map((end) => (end ?? 0) - Date.now() / 1000));
      if (left < MAX_OUTAGE_SECONDS) throw new Error(`one ends in ${left.toFixed(0)} s`);
      return left;
    });
    await scale('issuer', 0);
    await eventually('the provider is gone', 30, async () => (await replicasOf('issuer')).length === 0);
    const [replica] = await readyReplicas('broker', 2);
    // Its successor has never had a token, and cannot get one.
    await killReplica(replica as Pod);
    await expectNoFailure(pods.slice(0, 5), 3);
    await scale('issuer', 1);
    await readyReplicas('issuer', 1);
    const returnedAt = Date.now();
    await eventually('every replica that is asked has a token', 30, async () => {
      const answers = await Promise.all([asking(token), asking(token), asking(token), asking(token)]);
      return answers.every(({ status }) => status === 200);
    });
    expect(Date.now() - returnedAt).toBeLessThan(15_000);
    expect((await totalOf(pods)).failures).toEqual([]);
  }, 400_000);

  it('a token that was believed is refused a minute after its pod was deleted', async () => {
    await eventually('it is refused', 90, async () => (await asking(deleted.token)).status === 401);
    expect(Date.now() - deleted.at).toBeLessThan(300_000);
  });

  it('every pod renews its token, and no request fails', async () => {
    await eventually('pods have renewed their tokens', 2 * TOKEN_LIFETIME_SECONDS, async () => {
      const counts = await Promise.all(
        pods
          .slice(0, 10)
          .map((pod) => metricOf(pod, /^token_sidecar_token_refresh_total\{.*result="success"/)),
      );
      return counts.every((count) => (count ?? 0) >= 2);
    });
    expect(await totalOf(pods)).toMatchObject({ failures: [] });
  }, 240_000);
});
