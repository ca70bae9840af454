/** Pods as app teams write them: annotated, and without a word of tokens. */

import { PROGRAMS_IMAGE, type Program } from '../node/images.ts';
import { get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { CLIENT_SECRET, ISSUER, JWKS } from './release.ts';

/** What an app team calls; the sidecar's upstream. */
export const API_URL = 'http://api.SHOP.svc:8080';

export const SECURE_POD = {
  runAsNonRoot: true,
  runAsUser: 10_001,
  seccompProfile: { type: 'RuntimeDefault' },
};
const SECURE_CONTAINER = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };

export interface Annotations {
  readonly [name: string]: string;
}

export function askingForSidecar(namespace: string, more: Annotations = {}): Annotations {
  return {
    'token-sidecar.dev/inject': 'true',
    'token-sidecar.dev/secret': CLIENT_SECRET,
    'token-sidecar.dev/upstream': API_URL.replace('SHOP', namespace),
    'token-sidecar.dev/audience': 'api',
    ...more,
  };
}

export function container(program: Program, env: Readonly<Record<string, string>> = {}): object {
  return {
    name: 'app',
    image: PROGRAMS_IMAGE,
    command: ['node', `/programs/${program}.js`],
    env: Object.entries(env).map(([name, value]) => ({ name, value })),
    securityContext: SECURE_CONTAINER,
    resources: { requests: { cpu: '1m', memory: '16Mi' } },
  };
}

/** A pod template whose app calls through the sidecar. */
export function callingTemplate(
  app: string,
  annotations: Annotations,
  env: Readonly<Record<string, string>> = {},
  spec: object = {},
): object {
  return {
    metadata: { labels: { app }, annotations },
    spec: {
      terminationGracePeriodSeconds: 5,
      securityContext: SECURE_POD,
      containers: [container('caller', env)],
      ...spec,
    },
  };
}

/** The protected API and its Service, in `namespace`. */
export function protectedApi(namespace: string): object[] {
  const labels = { app: 'api' };
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'api', namespace },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            terminationGracePeriodSeconds: 2,
            securityContext: SECURE_POD,
            containers: [
              {
                ...container('api', { JWKS_URL: JWKS, ISSUER: `${ISSUER}/realms/dx`, AUDIENCE: 'api' }),
                // It answers while a hundred pods start beside it.
                resources: { requests: { cpu: '250m', memory: '32Mi' } },
              },
            ],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'api', namespace },
      spec: { selector: labels, ports: [{ port: 8080 }] },
    },
  ];
}

export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly deletionTimestamp?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly Container[];
    readonly initContainers?: readonly (Container & { readonly restartPolicy?: string })[];
  };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

export interface Container {
  readonly name: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}

export interface ContainerStatus {
  readonly name: string;
  readonly containerID?: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly state: {
    readonly terminated?: {
      readonly exitCode: number;
      readonly message?: string;
      readonly finishedAt?: string;
    };
    readonly waiting?: { readonly reason: string; readonly message?: string };
  };
  readonly lastState: {
    readonly terminated?: { readonly exitCode: number; readonly message?: string };
  };
}

export async function podsOf(namespace: string, app: string): Promise<readonly Pod[]> {
  const { items } = await get<{ items: Pod[] }>('pods', '-n', namespace, '-l', `app=${app}`);
  return items;
}

export function hasSidecar({ spec }: Pod): boolean {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  return containers.some(({ name }) => name === 'token-sidecar');
}

export function sidecarStatus({ status }: Pod): ContainerStatus | undefined {
  const statuses = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return statuses.find(({ name }) => name === 'token-sidecar');
}

export function isReady({ status }: Pod): boolean {
  return (status.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True');
}

/**
 * The pods of an app, once there are so many and all are ready.
 * @throws with the pods there are instead, and what the namespace's last refusals of a pod say.
 */
export function readyPods(
  namespace: string,
  app: string,
  count: number,
  seconds = 120,
): Promise<readonly Pod[]> {
  return eventually(`${count} ready pods of ${app}`, seconds, async () => {
    const pods = await podsOf(namespace, app);
    if (pods.length === count && pods.every(isReady)) return pods;
    const states = pods.map((pod) => `${pod.metadata.name} ${isReady(pod) ? 'ready' : pod.status.phase}`);
    const refusals = pods.length < count ? await refusedPods(namespace, app) : [];
    throw new Error([`${pods.length} pods`, ...states, ...refusals].join('; '));
  });
}

/** Why a ReplicaSet of an app could not create its pods: the messages of its newest events. */
async function refusedPods(namespace: string, app: string): Promise<readonly string[]> {
  const { items } = await get<{ items: { message: string; involvedObject: { name: string } }[] }>(
    ...(['events', '-n', namespace, '--field-selector', 'reason=FailedCreate'] as const),
    '--sort-by=.lastTimestamp',
  );
  const ofApp = items.filter(({ involvedObject }) => involvedObject.name.startsWith(`${app}-`));
  return ofApp.slice(-2).map(({ message }) => message);
}

export interface Counts {
  readonly calls: number;
  readonly failed: number;
  readonly failures: readonly string[];
}

/** What a calling app has counted so far. */
export async function countsOf({ metadata }: Pod): Promise<Counts> {
  const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}:8080/proxy/`;
  return JSON.parse(await kubectl('get', '--raw', path)) as Counts;
}

/** Waits for `more` further calls of an app, and gives its counts then. */
export async function callsOn(pod: Pod, more: number, seconds = 60): Promise<Counts> {
  // A ready pod may be one whose app has only begun to start.
  const { calls } = await eventually('the app tells its counts', 30, () => countsOf(pod));
  return eventually(`${more} more calls`, seconds, async () => {
    const counts = await countsOf(pod);
    return counts.calls >= calls + more ? counts : undefined;
  });
}

/** A figure of the sidecar's metrics, summed over its series; undefined when there is none. */
export async function metricOf({ metadata }: Pod, series: RegExp): Promise<number | undefined> {
  const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}:15081/proxy/metrics`;
  const values = (await kubectl('get', '--raw', path))
    .split('\n')
    .filter((line) => series.test(line))
    .map((line) => Number(line.split(' ').at(-1)));
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
}
