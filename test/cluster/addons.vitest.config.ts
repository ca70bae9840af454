import { defineConfig } from 'vitest/config';
import cluster from './vitest.config.ts';

/** The same node, with programs of others beside Kubernetes: `npm run test:cluster-addons`. */
export default defineConfig({
  ...cluster,
  test: { ...cluster.test, include: ['test/cluster/addons/*.test.ts'] },
});
