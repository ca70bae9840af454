import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inPki } from '../node/certificates.ts';
import { apply, create, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { provideTlsService } from '../support/tls-service.ts';
import { NO_NODE } from '../support/unscheduled-pods.ts';
import {
  askingForSidecar,
  callingTemplate,
  callsOn,
  type Pod,
  podsOf,
  readyPods,
} from '../support/workload.ts';

const SHOP = 'service-mesh';
/** After ours in the alphabet, and so in turn: ours has to be asked again. */
const WEBHOOK = 'zz-mesh';
type Kind = 'native' | 'classic' | 'old';

inCluster('beside a mesh whose webhook adds its containers after ours, and before all others', () => {
  useShop(SHOP);
  beforeAll(async () => {
    await provideTlsService({ namespace: SHOP, name: 'mesh', program: 'mesh', args: ['webhook'] });
    await apply({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: WEBHOOK },
      webhooks: [
        {
          name: 'mesh.example.com',
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          failurePolicy: 'Fail',
          clientConfig: {
            service: { name: 'mesh', namespace: SHOP },
            caBundle: readFileSync(inPki('ca.crt')).toString('base64'),
          },
          objectSelector: { matchExpressions: [{ key: 'mesh', operator: 'Exists' }] },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        },
      ],
    });
    await eventually('the API server asks the mesh', 30, async () =>
      initContainers(await tried()).includes('mesh-proxy'),
    );
  });
  afterAll(() => kubectl('delete', 'mutatingwebhookconfiguration', WEBHOOK, '--ignore-not-found'));

  const template = (
    app: string,
    env: Readonly<Record<string, string>> = {},
    annotations: Readonly<Record<string, string>> = {},
    spec: object = {},
    mesh: Kind = 'native',
  ): { metadata: object; spec: object } => {
    const made = callingTemplate(app, askingForSidecar(SHOP, annotations), env, spec) as {
      metadata: object;
      spec: object;
    };
    return { ...made, metadata: { ...made.metadata, labels: { app, mesh } } };
  };

  const tried = (annotations: Readonly<Record<string, string>> = {}, mesh: Kind = 'native'): Promise<Pod> => {
    const { metadata, spec } = template('tried', {}, annotations, NO_NODE, mesh);
    return create<Pod>(
      { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: 'tried', namespace: SHOP }, spec },
      '--dry-run=server',
    );
  };
  const initContainers = ({ spec }: Pod): readonly string[] =>
    (spec.initContainers ?? []).map(({ name }) => name);

  it('a pod has both sidecars once each, and its app is answered', async () => {
    await apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'meshed', namespace: SHOP },
      spec: { selector: { matchLabels: { app: 'meshed' } }, template: template('meshed') },
    });
    const [pod] = await readyPods(SHOP, 'meshed', 1);
    expect(pod && initContainers(pod)).toEqual(['mesh-init', 'mesh-proxy', 'token-sidecar']);
    expect(pod && (await callsOn(pod, 20))).toMatchObject({ failed: 0 });
  });

  it('a Job completes, and the token sidecar is stopped after the app', async () => {
    await apply({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'meshed-job', namespace: SHOP },
      spec: {
        backoffLimit: 0,
        template: template('meshed-job', { TIMES: '20' }, {}, { restartPolicy: 'Never' }),
      },
    });
    await eventually('the Job is complete', 120, async () => {
      const { status } = await get<{ status: { succeeded?: number; failed?: number } }>(
        'job',
        'meshed-job',
        '-n',
        SHOP,
      );
      if (status.failed !== undefined) throw new Error('the Job has failed');
      return status.succeeded === 1;
    });
    const [pod] = await podsOf(SHOP, 'meshed-job');
    const ends = [...(pod?.status.containerStatuses ?? []), ...(pod?.status.initContainerStatuses ?? [])].map(
      ({ name, state: { terminated } }) => ({ name, ...terminated }),
    );
    expect(ends.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0]);
    const endOf = (wanted: string): number =>
      Date.parse(ends.find(({ name }) => name === wanted)?.finishedAt ?? '');
    expect(endOf('token-sidecar')).toBeGreaterThanOrEqual(endOf('app'));
  });

  it('a webhook that knows no restartPolicy of containers takes it from the sidecar, which gets it back', async () => {
    const { spec } = await tried({}, 'old');
    expect(spec.initContainers).toContainEqual(
      expect.objectContaining({ name: 'token-sidecar', restartPolicy: 'Always' }),
    );
  });

  it('in forward mode the variables of the proxy go to containers that came later, unless they start before it', async () => {
    const forward = { 'token-sidecar.dev/mode': 'forward', 'token-sidecar.dev/config-map': 'routes' };
    const withProxy = ({ spec }: Pod): readonly string[] =>
      [...spec.containers, ...(spec.initContainers ?? [])]
        .filter(({ env = [] }) => env.some(({ name }) => name === 'HTTP_PROXY'))
        .map(({ name }) => name);
    expect(withProxy(await tried(forward))).toEqual(['app']);
    const classic = await tried(forward, 'classic');
    expect(initContainers(classic)).toEqual(['mesh-init', 'token-sidecar']);
    expect(withProxy(classic)).toEqual(['app', 'mesh-proxy']);
  });
});
