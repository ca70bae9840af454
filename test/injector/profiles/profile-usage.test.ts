import { expect, it } from 'vitest';
import type { ProfileIdentity } from '../../../src/injector/profiles/profile.ts';
import { createProfileUsage } from '../../../src/injector/profiles/profile-reports.ts';

const IN_USE = 'token-sidecar.dev/profiles-in-use';
const PAYMENTS = {
  kind: 'TokenProfile',
  name: 'payments',
  namespace: 'team',
  generation: 3,
} as ProfileIdentity;

/** How a profile is used where these pods say so. */
function usedBy(profile: ProfileIdentity, ...pods: string[]) {
  const usage = createProfileUsage();
  for (const [at, text] of pods.entries()) {
    usage.seen({ metadata: { uid: `${at}`, namespace: 'team', annotations: { [IN_USE]: text } } });
  }
  return usage.of([profile]).get(profile);
}

it('pods are counted, and those apart that were made by an earlier generation', () => {
  expect(
    usedBy(PAYMENTS, 'TokenProfile/payments@3', 'TokenProfile/payments@2, TokenProfile/other@9'),
  ).toEqual({ pods: 2, outdatedPods: 1 });
});

it('a pod that was made from a file has no known generation, and is not outdated', () => {
  expect(
    usedBy(PAYMENTS, 'TokenProfile/payments', 'TokenProfile/payments', 'TokenProfile/payments@1'),
  ).toEqual({
    pods: 3,
    outdatedPods: 1,
  });
});

it('a profile without a generation has no pods that are outdated', () => {
  const { generation: _, ...made } = PAYMENTS;
  expect(usedBy(made as ProfileIdentity, 'TokenProfile/payments@1')).toEqual({ pods: 1, outdatedPods: 0 });
});

it.each([
  'TokenProfile/payments@3 x',
  'x TokenProfile/payments@3',
  'Profile/payments@3',
  'TokenProfile/Payments@3',
  'TokenProfile/payments@',
  `TokenProfile/payments@${'1'.repeat(16)}`,
  'ClusterTokenProfile/payments@3',
])('what is written otherwise counts for nothing: %s', (text) => {
  expect(usedBy(PAYMENTS, text)).toEqual({ pods: 0, outdatedPods: 0 });
});
