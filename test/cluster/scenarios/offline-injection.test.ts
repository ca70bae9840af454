import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { ROOT } from '../../image/container-tools.ts';
import { apply, create, get } from '../node/kubectl.ts';
import { run } from '../node/run.ts';
import { KUBERNETES } from '../node/versions.ts';
import { NAMESPACE, RELEASE } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { type Annotations, askingForSidecar, callingTemplate, container } from '../support/workload.ts';

const SHOP = 'offline-injection';

interface Template {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: object;
}

interface InjectorDeployment {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly {
          readonly env: readonly { readonly name: string; readonly value?: string }[];
        }[];
      };
    };
  };
}

inCluster('`token-sidecar inject` with the settings of the injector', () => {
  useShop(SHOP);
  let settings: Readonly<Record<string, string>>;

  beforeAll(async () => {
    const { spec } = await get<InjectorDeployment>(
      ...(['deployment', `${RELEASE}-injector`, '-n', NAMESPACE] as const),
    );
    const env = spec.template.spec.containers[0]?.env ?? [];
    settings = Object.fromEntries(
      env
        .filter(({ name }) => /^TOKEN_SIDECAR_(DEFAULT|ALLOWED)_/.test(name))
        .map(({ name, value = '' }) => [name, value]),
    );
    await apply({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'plain', namespace: SHOP },
    });
  });

  const injectOffline = (manifest: object): Promise<string> =>
    run(
      process.execPath,
      [
        ...[join(ROOT, 'src/main.ts'), 'inject', '--namespace', SHOP],
        ...['--kubernetes-version', KUBERNETES.replace(/^v/, '')],
      ],
      { input: stringify(manifest), env: settings },
    );

  /** A pod as the API server admits it, without what is drawn for each. */
  async function admitted({ metadata, spec }: Template): Promise<unknown> {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, name: 'same', namespace: SHOP },
      spec,
    };
    const made = await create<{
      readonly metadata: { readonly annotations?: object; readonly labels?: object };
      readonly spec: { readonly volumes?: readonly { readonly name: string }[] };
    }>(pod, '--dry-run=server');
    // The API server mounts its token before the webhook is asked, and after `inject` is.
    const volumes = [...(made.spec.volumes ?? [])];
    const known = {
      annotations: made.metadata.annotations,
      labels: made.metadata.labels,
      spec: { ...made.spec, volumes },
    };
    const text = JSON.stringify(known).replaceAll(/kube-api-access-[a-z0-9]{5}/g, 'kube-api-access');
    const comparable = JSON.parse(text) as typeof known;
    comparable.spec.volumes.sort((one, other) => one.name.localeCompare(other.name));
    return comparable;
  }

  const asking = (more: Annotations = {}, spec: object = {}): Template =>
    callingTemplate('same', askingForSidecar(SHOP, more), {}, spec) as Template;

  const pods: Readonly<Record<string, Template>> = {
    'a pod of one container': asking(),
    'a pod with init containers, a native sidecar of its own and a token of its service account': asking(
      {},
      {
        serviceAccountName: 'plain',
        initContainers: [
          { ...container('caller'), name: 'first' },
          { ...container('caller'), name: 'own-sidecar', restartPolicy: 'Always' },
        ],
      },
    ),
    'a pod without a token of its service account, with a group of its own': asking(
      {},
      {
        automountServiceAccountToken: false,
        securityContext: {
          runAsUser: 10_001,
          runAsNonRoot: true,
          fsGroup: 2000,
          seccompProfile: { type: 'RuntimeDefault' },
        },
      },
    ),
    'a pod whose sidecar is not native': asking({ 'token-sidecar.dev/native-sidecar': 'false' }),
    'a pod in forward mode, with a ConfigMap and CAs': asking({
      'token-sidecar.dev/mode': 'forward',
      'token-sidecar.dev/config-map': 'routes',
      'token-sidecar.dev/ca-config-map': 'kube-root-ca.crt',
    }),
    'a pod with resources, a log level and an image of its own': asking({
      'token-sidecar.dev/cpu-request': '20m',
      'token-sidecar.dev/cpu-limit': '1',
      'token-sidecar.dev/memory-request': '200Mi',
      'token-sidecar.dev/log-level': 'debug',
      'token-sidecar.dev/image': 'registry.example.com/token-sidecar:2',
      'token-sidecar.dev/scope': 'read write',
    }),
    'a pod that does not ask': callingTemplate('same', {}) as Template,
  };

  for (const [what, template] of Object.entries(pods)) {
    it(`makes the same of ${what} as the webhook`, async () => {
      const offline = parse(
        await injectOffline({
          apiVersion: 'v1',
          kind: 'Pod',
          ...template,
          metadata: { ...template.metadata, name: 'same' },
        }),
      ) as Template;
      expect(await admitted(offline)).toEqual(await admitted(template));
    });
  }

  const workloads: Readonly<Record<string, string>> = {
    Deployment: 'apps/v1',
    StatefulSet: 'apps/v1',
    DaemonSet: 'apps/v1',
    Job: 'batch/v1',
    CronJob: 'batch/v1',
  };
  for (const [kind, apiVersion] of Object.entries(workloads)) {
    it(`makes the same of the pods of a ${kind} as the webhook`, async () => {
      const isJob = apiVersion === 'batch/v1';
      const template = asking({}, isJob ? { restartPolicy: 'Never' } : {});
      const selector = isJob ? {} : { selector: { matchLabels: { app: 'same' } } };
      const ofPods = { ...selector, template };
      const workload = {
        apiVersion,
        kind,
        metadata: { name: 'same' },
        spec: kind === 'CronJob' ? { schedule: '@daily', jobTemplate: { spec: ofPods } } : ofPods,
      };
      const { spec } = parse(await injectOffline(workload)) as {
        spec: { template: Template; jobTemplate?: { spec: { template: Template } } };
      };
      const offline = spec.jobTemplate?.spec.template ?? spec.template;
      expect(offline.spec).not.toEqual(template.spec);
      expect(await admitted(offline)).toEqual(await admitted(template));
    });
  }

  it('refuses with the same words what the webhook refuses', async () => {
    const wrong = asking({
      'token-sidecar.dev/auth-url': 'sso.example.com',
      'token-sidecar.dev/native-sidecar': 'yes',
      'token-sidecar.dev/secrte': 'shop-oauth',
    });
    const said = await admitted(wrong).catch(({ message }: Error) => message);
    const problems = String(said).split('denied the request: ')[1]?.trim() ?? '';
    expect(problems).toContain('token-sidecar.dev/secrte');
    await expect(
      injectOffline({
        apiVersion: 'v1',
        kind: 'Pod',
        ...wrong,
        metadata: { ...wrong.metadata, name: 'same' },
      }),
    ).rejects.toThrow(problems);
  });
});
