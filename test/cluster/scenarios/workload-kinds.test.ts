import { expect, it } from 'vitest';
import { apply, get, kubectl } from '../node/kubectl.ts';
import { eventually } from '../node/run.ts';
import { hasPolicies, inCluster, useShop } from '../support/scenario.ts';
import {
  askingForSidecar,
  callingTemplate,
  callsOn,
  hasSidecar,
  podsOf,
  readyPods,
  sidecarStatus,
} from '../support/workload.ts';

const SHOP = 'workload-kinds';

inCluster('every kind of workload', () => {
  useShop(SHOP);
  const annotations = askingForSidecar(SHOP);

  const running: Readonly<Record<string, string>> = {
    Deployment: 'apps/v1',
    StatefulSet: 'apps/v1',
    DaemonSet: 'apps/v1',
    ReplicaSet: 'apps/v1',
    ReplicationController: 'v1',
  };
  for (const [kind, apiVersion] of Object.entries(running)) {
    it(`${kind}: its app is answered, and knows no token`, async () => {
      const app = kind.toLowerCase();
      const labels = { app };
      await apply({
        apiVersion,
        kind,
        metadata: { name: app, namespace: SHOP },
        spec: {
          ...(kind === 'ReplicationController' ? {} : { selector: { matchLabels: labels } }),
          ...(kind === 'StatefulSet' ? { serviceName: app } : {}),
          template: callingTemplate(app, annotations),
        },
      });
      const [pod] = await readyPods(SHOP, app, 1);
      expect(pod && hasSidecar(pod)).toBe(true);
      expect(pod && (await callsOn(pod, 20))).toMatchObject({ failed: 0 });
    });
  }

  it('Job: it completes with exit code 0, and the sidecar with it', async () => {
    await apply({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'job', namespace: SHOP },
      spec: {
        backoffLimit: 0,
        template: callingTemplate('job', annotations, { TIMES: '20' }, { restartPolicy: 'Never' }),
      },
    });
    await eventually('the Job is complete', 120, async () => {
      const job = await get<Job>('job', 'job', '-n', SHOP);
      if (job.status.failed !== undefined) throw new Error('the Job has failed');
      return job.status.succeeded === 1;
    });
    const [pod] = await podsOf(SHOP, 'job');
    expect(pod && sidecarStatus(pod)?.state.terminated).toMatchObject({ exitCode: 0 });
  });

  it('CronJob: its Jobs complete', async () => {
    await apply({
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'cron', namespace: SHOP },
      spec: {
        schedule: '* * * * *',
        concurrencyPolicy: 'Forbid',
        jobTemplate: {
          spec: {
            backoffLimit: 0,
            template: callingTemplate('cron', annotations, { TIMES: '5' }, { restartPolicy: 'Never' }),
          },
        },
      },
    });
    await eventually('a Job of the CronJob is complete', 150, async () => {
      const { items } = await get<{ items: Job[] }>('jobs', '-n', SHOP);
      const jobs = items.filter(({ metadata }) => metadata.name.startsWith('cron-'));
      if (jobs.some(({ status }) => status.failed !== undefined)) throw new Error('a Job has failed');
      return jobs.some(({ status }) => status.succeeded === 1);
    });
  });

  it('a pod without the annotation is left alone', async () => {
    await apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'plain', namespace: SHOP },
      spec: { selector: { matchLabels: { app: 'plain' } }, template: callingTemplate('plain', {}) },
    });
    const [pod] = await readyPods(SHOP, 'plain', 1);
    expect(pod && hasSidecar(pod)).toBe(false);
  });

  it.runIf(hasPolicies)('whoever annotates the workload, and not its pod template, is warned', async () => {
    const workload = { apiVersion: 'apps/v1', kind: 'Deployment' };
    await apply({
      ...workload,
      metadata: { name: 'misplaced', namespace: SHOP },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'misplaced' } },
        template: callingTemplate('misplaced', {}),
      },
    });
    const annotate = ['annotate', 'deployment', 'misplaced', 'token-sidecar.dev/inject=true'];
    await expect(kubectl('-n', SHOP, ...annotate, '--warnings-as-errors')).rejects.toThrow(
      /means nothing on a Deployment: put it on the pod template/,
    );
  });
});

interface Job {
  readonly metadata: { readonly name: string };
  readonly status: { readonly succeeded?: number; readonly failed?: number };
}
