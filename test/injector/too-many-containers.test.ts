import { expect, it } from 'vitest';
import { inject } from '../../src/injector/pod/inject.ts';
import { ASKING, DEFAULTS } from './defaults.ts';

const containers = (count: number) => [
  { name: 'token-sidecar', restartPolicy: 'Always' },
  ...Array.from({ length: count - 1 }, (_, index) => ({ name: `app-${index}` })),
];

it.each(['containers', 'initContainers'])('a second pass too takes two hundred %s at most', (list) => {
  const annotations = {
    ...ASKING,
    'token-sidecar.dev/mode': 'forward',
    'token-sidecar.dev/config-map': 'routes',
    'token-sidecar.dev/status': 'injected',
  };
  const verdict = (count: number) =>
    inject(
      { metadata: { annotations }, spec: { [list]: containers(count) } },
      { name: 'team' },
      DEFAULTS,
      {},
    );
  expect(verdict(200)).toMatchObject({ result: 'injected', reason: 'later_containers' });
  expect(verdict(201)).toMatchObject({
    result: 'rejected',
    reason: 'unsuitable_pod',
    message: expect.stringContaining('"201": expected at most 200'),
  });
});
