import { expect, test } from 'vitest';
import { ciValues, manifests, podOf } from './manifests.ts';
import { restrictedViolations } from './pod-security.ts';

test.each(await ciValues())('every pod of %s meets the restricted standard', async (ci) => {
  const pods = (await manifests({ ci })).map(podOf).filter((pod) => pod !== undefined);

  expect(pods.flatMap(restrictedViolations)).toEqual([]);
  if (ci !== 'library-values.yaml') expect(pods.length).toBeGreaterThan(0);
});
