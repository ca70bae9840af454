/** Every suite of the project, in the order of what they take, each with the whole of what it can run. */
export interface Suite {
  readonly name: string;
  /** npm script and its arguments. */
  readonly script: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** What `.ci/run` runs of it. */
  readonly inCi: 'nothing' | 'part' | 'whole';
}

export const SUITES: readonly Suite[] = [
  { name: 'check', script: 'check', inCi: 'whole' },
  { name: 'unit', script: 'test', env: { TEST_VOLUME: 'whole' }, inCi: 'whole' },
  { name: 'bundle', script: 'test:bundle', inCi: 'whole' },
  { name: 'package', script: 'test:package', inCi: 'whole' },
  { name: 'browser', script: 'test:browser', inCi: 'whole' },
  { name: 'faults', script: 'test:faults', inCi: 'whole' },
  { name: 'simulate', script: 'simulate', inCi: 'nothing' },
  { name: 'simulate-broker', script: 'simulate', args: ['--broker'], inCi: 'nothing' },
  { name: 'e2e', script: 'test:e2e', env: { TEST_VOLUME: 'whole' }, inCi: 'whole' },
  { name: 'docs', script: 'test:docs', inCi: 'whole' },
  { name: 'chart', script: 'test:chart', inCi: 'whole' },
  { name: 'image', script: 'test:image', inCi: 'whole' },
  { name: 'cluster', script: 'test:cluster', env: { PODS: '100' }, inCi: 'part' },
  { name: 'cluster-addons', script: 'test:cluster-addons', inCi: 'nothing' },
  { name: 'fuzz-http1', script: 'fuzz', args: ['--seconds', '600'], inCi: 'part' },
  { name: 'fuzz-http2', script: 'fuzz', args: ['--protocol', 'h2', '--seconds', '600'], inCi: 'part' },
  { name: 'fuzz-hpack', script: 'fuzz', args: ['--protocol', 'hpack', '--seconds', '600'], inCi: 'part' },
  { name: 'chaos', script: 'chaos', args: ['--seconds', '600'], inCi: 'part' },
  { name: 'soak', script: 'soak', inCi: 'part' },
  { name: 'bench', script: 'bench', inCi: 'nothing' },
  { name: 'bench-broker', script: 'bench:broker', inCi: 'nothing' },
  { name: 'bench-interception', script: 'bench:interception', inCi: 'nothing' },
  { name: 'bench-memory', script: 'bench:memory', inCi: 'nothing' },
  { name: 'repeat', script: 'test:repeat', inCi: 'nothing' },
  { name: 'mutation', script: 'mutation', inCi: 'part' },
];
