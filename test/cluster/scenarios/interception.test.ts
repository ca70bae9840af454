/** Apps that call `https://` and stay as they are: by the pod's hosts file, and by the kernel. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { apply, create, get } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { CLIENT_SECRET, clientSecret, deleteNamespace, installChart, namespace } from '../support/release.ts';
import { inCluster, useShop } from '../support/scenario.ts';
import { provideTlsService } from '../support/tls-service.ts';
import {
  API_URL,
  callingTemplate,
  callsOn,
  metricOf,
  podsOf,
  readyPods,
  sidecarStatus,
} from '../support/workload.ts';

/** Enforces the restricted Pod Security Standard, as namespaces of the scenarios do. */
const SHOP = 'interception';
/** Allows what the mode redirect takes. */
const LEGACY = 'interception-by-kernel';
const HOST = `secure-api.${SHOP}.svc`;

const asking = (mode: string) => ({
  'token-sidecar.dev/inject': 'true',
  'token-sidecar.dev/secret': CLIENT_SECRET,
  'token-sidecar.dev/audience': 'api',
  'token-sidecar.dev/mode': mode,
  'token-sidecar.dev/hosts': HOST,
  // Of every namespace; the API shows a certificate of the cluster's.
  'token-sidecar.dev/ca-config-map': 'kube-root-ca.crt',
});

/** The API's own name over TLS: no app of these trusts its certificate, but the sidecar does. */
const URL = { URL: `https://${HOST}/` };

interface Job {
  readonly status: { readonly succeeded?: number; readonly failed?: number };
}

inCluster('an app that calls https:// and stays as it is', () => {
  useShop(SHOP);
  beforeAll(async () => {
    await installChart({
      'injector.allowed.modes': ['hosts', 'redirect'],
      // With profiles the injector knows the labels of namespaces, and so what they forbid.
      'crds.enabled': true,
      'injector.profiles.enabled': true,
    });
    const api = API_URL.replace('SHOP', SHOP);
    await provideTlsService({
      namespace: SHOP,
      name: 'secure-api',
      program: 'front',
      env: { TOKENS: api, DISCOVERY: api },
    });
    const labels = { 'pod-security.kubernetes.io/enforce': 'privileged' };
    await apply(namespace(LEGACY, labels), clientSecret(LEGACY, 'first'));
  });
  afterAll(() => deleteNamespace(LEGACY));

  it.each([
    ['hosts', 'a namespace that enforces the restricted standard', SHOP],
    ['redirect', 'one that allows an init container with NET_ADMIN', LEGACY],
  ])('by the mode %s in %s has its token, and its Job completes', async (mode, _, where) => {
    await apply({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: mode, namespace: where },
      spec: {
        backoffLimit: 0,
        template: callingTemplate(mode, asking(mode), { ...URL, TIMES: '20' }, { restartPolicy: 'Never' }),
      },
    });
    const status = await eventually('the Job has ended', 120, async () => {
      const job = await get<Job>('job', mode, '-n', where);
      return job.status.succeeded === undefined && job.status.failed === undefined ? undefined : job.status;
    });
    expect(status).toMatchObject({ succeeded: 1 });
    const pods = await podsOf(where, mode);
    expect(pods.map((pod) => sidecarStatus(pod)?.state.terminated?.exitCode)).toEqual([0]);
  });

  it('by the mode redirect comes to the sidecar, and to nobody else', async () => {
    const app = 'redirected';
    await apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: app, namespace: LEGACY },
      spec: { selector: { matchLabels: { app } }, template: callingTemplate(app, asking('redirect'), URL) },
    });
    const [pod] = await readyPods(LEGACY, app, 1);
    if (pod === undefined) throw new Error('there is no pod');
    const served = new RegExp(`^token_sidecar_proxy_requests_total\\{.*route="redirect:${HOST}".*code="200"`);
    await eventually('requests are served', 60, async () => ((await metricOf(pod, served)) ?? 0) >= 10);
    // What came to the API itself would have no token, and a certificate that the app does not trust.
    const { calls, failures } = await callsOn(pod, 10);
    expect(failures).toEqual([]);
    expect(await metricOf(pod, served)).toBeGreaterThanOrEqual(calls);
  });

  it('has no pod by the mode redirect where the namespace forbids it', async () => {
    const podBy = (mode: string) => {
      const template = callingTemplate(`by-${mode}`, asking(mode), URL) as { metadata: object; spec: object };
      return {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...template.metadata, name: `by-${mode}`, namespace: SHOP },
        spec: template.spec,
      };
    };
    // Said by the injector: Kubernetes' own refusal would name a container that nobody here wrote.
    await expect(create(podBy('redirect'))).rejects.toThrow(
      `the namespace ${SHOP} enforces the Pod Security Standard restricted`,
    );
    // Nothing else of it is forbidden there.
    await expect(create(podBy('hosts'))).resolves.toMatchObject({ metadata: { name: 'by-hosts' } });
  });
});
