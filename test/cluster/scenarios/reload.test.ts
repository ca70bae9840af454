import { beforeAll, expect, it } from 'vitest';
import { apply, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { expectNoFailure } from '../support/faults.ts';
import { ISSUER } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import {
  API_URL,
  askingForSidecar,
  callingTemplate,
  metricOf,
  type Pod,
  readyPods,
} from '../support/workload.ts';

const SHOP = 'reload';
const CONFIG_MAP = 'token-sidecar';
const APP = 'caller';
const REPLICAS = 2;

/** The kubelet looks at a pod that has changed at once, else every minute. */
const SWAP_SECONDS = 120;

const ROUTE = {
  name: 'api',
  match: { pathPrefix: '/' },
  upstream: API_URL.replace('SHOP', SHOP),
  credential: 'default',
};

interface ReloadStatus {
  readonly generation: number;
  readonly state: string;
  readonly reason?: string;
}

function configMap(configuration: object): object {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: CONFIG_MAP, namespace: SHOP },
    data: { 'token-sidecar.yaml': JSON.stringify(configuration) },
  };
}

async function statusOf({ metadata }: Pod): Promise<ReloadStatus> {
  const path = `/api/v1/namespaces/${SHOP}/pods/${metadata.name}:15081/proxy/api/status`;
  const { configuration } = JSON.parse(await kubectl('get', '--raw', path)) as {
    configuration: ReloadStatus;
  };
  return configuration;
}

/** What is wrong is shown on loopback alone, and said in the log. */
const logOf = ({ metadata }: Pod): Promise<string> =>
  kubectl('-n', SHOP, 'logs', metadata.name, '-c', 'token-sidecar');

inCluster('a ConfigMap that is changed while apps call', () => {
  let pods: readonly Pod[] = [];
  let changes = 0;

  useShop(SHOP);
  beforeAll(async () => {
    const { 'token-sidecar.dev/upstream': _, ...annotations } = askingForSidecar(SHOP, {
      'token-sidecar.dev/auth-url': ISSUER,
      'token-sidecar.dev/config-map': CONFIG_MAP,
    });
    await apply(configMap({ routes: [ROUTE] }), {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: APP, namespace: SHOP },
      spec: {
        replicas: REPLICAS,
        selector: { matchLabels: { app: APP } },
        template: callingTemplate(APP, annotations),
      },
    });
    pods = await readyPods(SHOP, APP, REPLICAS);
  });

  /** Applies it, and waits until every sidecar shows what is expected. */
  async function change(configuration: object, expected: object): Promise<void> {
    changes += 1;
    await apply(configMap(configuration));
    await kubectl('-n', SHOP, 'annotate', 'pods', '-l', `app=${APP}`, '--overwrite', `looked-at=${changes}`);
    for (const pod of pods) {
      await eventually(`${pod.metadata.name} shows the change`, SWAP_SECONDS, async () => {
        expect(await statusOf(pod)).toMatchObject(expected);
        return true;
      });
    }
  }

  const reloads = (pod: Pod, result: string): Promise<number | undefined> =>
    metricOf(pod, new RegExp(`^token_sidecar_config_reload_total\\{result="${result}"\\}`));

  const ELSEWHERE = { ...ROUTE, name: 'elsewhere', match: { pathPrefix: '/elsewhere/' } };

  it('takes effect without a failed request', async () => {
    await change(
      { routes: [ELSEWHERE, ROUTE], logLevel: 'debug', limits: { inFlight: 50 } },
      { generation: 2, state: 'current' },
    );
    for (const pod of pods) {
      expect(await metricOf(pod, /^token_sidecar_config_generation /)).toBe(2);
      expect(await reloads(pod, 'success')).toBe(1);
    }
    await expectNoFailure(pods);
  });

  it('with a mistake changes nothing, is shown and counted, and the next one takes effect', async () => {
    await change(
      { routes: [{ ...ROUTE, upstream: 'no URL' }] },
      { generation: 2, state: 'refused', reason: 'invalid' },
    );
    for (const pod of pods) {
      expect(await logOf(pod)).toContain('routes[0].upstream');
      expect(await metricOf(pod, /^token_sidecar_config_last_reload_successful /)).toBe(0);
      expect(await reloads(pod, 'invalid')).toBeGreaterThanOrEqual(1);
    }
    await expectNoFailure(pods);
    await change({ routes: [ROUTE] }, { generation: 3, state: 'current' });
    for (const pod of pods)
      expect(await metricOf(pod, /^token_sidecar_config_last_reload_successful /)).toBe(1);
    await expectNoFailure(pods);
  });

  it('says what takes a restart, and goes on', async () => {
    await change(
      { routes: [ROUTE], listen: '127.0.0.1:15999' },
      { generation: 3, state: 'refused', reason: 'restart_required' },
    );
    for (const pod of pods)
      expect(await logOf(pod)).toContain('listen: from 127.0.0.1:15080 to 127.0.0.1:15999');
    await expectNoFailure(pods);
  });

  it('serves through one route as through the other', async () => {
    await change({ routes: [ELSEWHERE] }, { generation: 4, state: 'current' });
    // Nothing leads to the API now, and the app is told so.
    const [pod] = pods;
    if (pod === undefined) throw new Error('no pod');
    await eventually('the app is refused', 60, async () => {
      const path = `/api/v1/namespaces/${SHOP}/pods/${pod.metadata.name}:8080/proxy/`;
      return (await kubectl('get', '--raw', path)).includes('route_not_found') || undefined;
    });
  });
});
