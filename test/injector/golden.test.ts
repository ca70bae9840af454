import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { injectManifests } from '../../src/injector/manifests/inject-manifests.ts';
import { MODES } from '../../src/injector/pod/annotations.ts';
import { profilesInManifests } from '../../src/injector/profile-rules.ts';
import { DEFAULTS } from './defaults.ts';

const GOLDEN = join(import.meta.dirname, 'golden');
const cases = readdirSync(GOLDEN)
  .filter((file) => file.endsWith('.in.yaml'))
  .map((file) => file.replace('.in.yaml', ''));
const BROKER_CA = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';
const options = {
  defaults: {
    ...DEFAULTS,
    allowedModes: MODES.all,
    broker: {
      url: 'https://token-sidecar-broker.tokens.svc:15084',
      audience: 'token-sidecar-broker',
      authorities: { from: 'file' as const, current: () => BROKER_CA },
    },
  },
  cluster: {},
  namespace: 'default',
  profilesIn: (contents: readonly unknown[]) => profilesInManifests(contents, 'default'),
};

const input = (name: string): string => readFileSync(join(GOLDEN, `${name}.in.yaml`), 'utf8');

test.each(cases)('%s', async (name) => {
  const { text, problems } = injectManifests(input(name), options);

  expect(problems).toEqual([]);
  await expect(text).toMatchFileSnapshot(join(GOLDEN, `${name}.out.yaml`));
});

test.each(cases)('%s is not changed by a second pass', (name) => {
  const { text } = injectManifests(input(name), options);

  expect(injectManifests(text, options).text).toBe(text);
});

test('there is a case for each kind of workload that Kubernetes has, for lists and for kinds of operators', () => {
  const kinds = cases.flatMap((name) => [...input(name).matchAll(/^kind: (\S+)/gm)]);
  const expected = [
    ...[
      'Pod',
      'ReplicationController',
      'Deployment',
      'StatefulSet',
      'DaemonSet',
      'ReplicaSet',
      'Job',
      'CronJob',
    ],
    ...['List', 'Rollout', 'LeaderWorkerSet'],
  ];

  expect(kinds.map(([, kind]) => kind)).toEqual(expect.arrayContaining(expected));
});
