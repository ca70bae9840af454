import { beforeAll, expect, it } from 'vitest';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { type Answer, ask, serviceAccountToken } from '../support/asking.ts';
import {
  expectNoFailure,
  killReplica,
  readyReplicas,
  replicasOf,
  restart,
  totalOf,
} from '../support/faults.ts';
import {
  callerByCertificate,
  callerByToken,
  GATEWAY_AUDIENCE,
  gatewayValues,
  ofPki,
  provideGatewaySecrets,
} from '../support/gateway.ts';
import { GATEWAY } from '../support/gateway-caller.ts';
import { installChart, NAMESPACE } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { type Pod, podsOf, readyPods } from '../support/workload.ts';

const SHOP = 'gateway';
const VALUES = gatewayValues(SHOP);

inCluster('the gateway', () => {
  let callers: readonly Pod[] = [];

  useShop(SHOP);
  beforeAll(async () => {
    await provideGatewaySecrets(SHOP);
    await apply(
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'others', namespace: SHOP } },
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'stranger', namespace: SHOP } },
    );
    await installChart(VALUES);
  });

  const asking = (path: string, proof: object): Promise<Answer> =>
    ask({ service: `${NAMESPACE}/${GATEWAY}`, port: 15_443, path, ca: ofPki('ca.crt'), ...proof });

  const shown = async (account: string, field = 'token-sidecar-caller', scheme = ''): Promise<object> => ({
    headers: {
      [field]: `${scheme}${await serviceAccountToken({ namespace: SHOP, account, audience: GATEWAY_AUDIENCE })}`,
    },
  });

  const certificate = (name: string): object => ({ cert: ofPki(`${name}.crt`), key: ofPki(`${name}.key`) });

  const refusal = async (path: string, proof: object): Promise<readonly [number, string | undefined]> => {
    const { status, headers } = await asking(path, proof);
    return [status, headers['token-sidecar-error']];
  };

  it('serves callers by their service account token and by their certificate, which have no token or secret', async () => {
    await apply(...callerByToken(SHOP), ...callerByCertificate(SHOP));
    callers = [...(await readyPods(SHOP, 'by-token', 2)), ...(await readyPods(SHOP, 'by-certificate', 2))];
    await expectNoFailure(callers, 20);
  });

  it('takes the token in either field', async () => {
    expect((await asking('/', await shown('by-token'))).status).toBe(200);
    expect((await asking('/', await shown('by-token', 'proxy-authorization', 'Bearer '))).status).toBe(200);
  });

  it.each([
    ['nobody', '/', {}, [401, 'caller_unknown']],
    ['a certificate that no entry names', '/', 'gateway-stranger', [403, 'caller_not_allowed']],
    ['an account that no entry names', '/', { account: 'stranger' }, [403, 'caller_not_allowed']],
    ['a route that the entry does not list', '/', { account: 'others' }, [403, 'caller_not_allowed']],
  ] as const)('refuses %s', async (_, path, who, expected) => {
    const proof =
      typeof who === 'string' ? certificate(who) : 'account' in who ? await shown(who.account) : {};
    expect(await refusal(path, proof)).toEqual(expected);
  });

  it('refuses a token of another audience', async () => {
    const token = await serviceAccountToken({ namespace: SHOP, account: 'by-token', audience: 'vault' });
    expect(await refusal('/', { headers: { 'token-sidecar-caller': token } })).toEqual([
      401,
      'caller_unknown',
    ]);
  });

  it('is restarted, one replica after another, without a lost request', async () => {
    const before = (await replicasOf('gateway')).map(({ metadata }) => metadata.name);
    await restart('gateway');
    const after = (await readyReplicas('gateway', 2)).map(({ metadata }) => metadata.name);
    expect(after.filter((name) => before.includes(name))).toEqual([]);
    await expectNoFailure(callers, 20);
    expect((await totalOf(callers)).failures).toEqual([]);
  });

  it('follows a changed policy without a new pod', async () => {
    const before = (await replicasOf('gateway')).map(({ metadata }) => metadata.name).sort();
    const [, , others, ...rest] = VALUES['gateway.callers'];
    const changed = [
      ...VALUES['gateway.callers'].slice(0, 2),
      { ...others, allowedRoutes: ['elsewhere', 'api'] },
      ...rest,
    ];
    await installChart({ ...VALUES, 'gateway.callers': changed });
    const proof = await shown('others');
    await eventually('the account may use the route', 60, async () => {
      const answers = await Promise.all([asking('/', proof), asking('/', proof), asking('/', proof)]);
      return answers.every(({ status }) => status === 200);
    });
    expect((await replicasOf('gateway')).map(({ metadata }) => metadata.name).sort()).toEqual(before);
    await expectNoFailure(callers, 20);
  });

  it('leaves the number of replicas to an autoscaler, which keeps the least of them, and one that is killed is replaced', async () => {
    const autoscaling = {
      enabled: true,
      minReplicas: 3,
      maxReplicas: 4,
      requestsInFlight: { enabled: true, metric: 'token_sidecar_gateway_requests_in_flight', target: 100 },
    };
    await installChart({ ...VALUES, 'gateway.autoscaling': autoscaling });
    const { spec } = await get<{ spec: { metrics: readonly { type: string }[] } }>(
      ...(['hpa', GATEWAY, '-n', NAMESPACE] as const),
    );
    expect(spec.metrics.map(({ type }) => type).sort()).toEqual(['Pods', 'Resource']);
    const [replica] = await readyReplicas('gateway', 3);
    await kubectl('-n', NAMESPACE, 'get', 'poddisruptionbudget', GATEWAY);
    await killReplica(replica as Pod);
    await readyReplicas('gateway', 3);
  });

  it('is one replica on each node as a DaemonSet, and answers the callers of its node', async () => {
    await installChart({ ...VALUES, 'gateway.kind': 'DaemonSet' });
    await readyReplicas('gateway', 1);
    const { spec } = await get<{ spec: { internalTrafficPolicy: string } }>(
      ...(['service', GATEWAY, '-n', NAMESPACE] as const),
    );
    expect(spec.internalTrafficPolicy).toBe('Local');
    await kubectl('-n', SHOP, 'delete', 'deployment', 'by-token', 'by-certificate');
    await eventually('the callers from before are gone', 60, async () => {
      const apps = await Promise.all([podsOf(SHOP, 'by-token'), podsOf(SHOP, 'by-certificate')]);
      return apps.flat().length === 0;
    });
    await apply(...callerByToken(SHOP), ...callerByCertificate(SHOP));
    const own = [...(await readyPods(SHOP, 'by-token', 2)), ...(await readyPods(SHOP, 'by-certificate', 2))];
    await expectNoFailure(own, 20);
  });
});
