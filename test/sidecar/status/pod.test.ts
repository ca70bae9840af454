import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { readPod } from '../../../src/sidecar/status/pod.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';

it('is called as the downward API says', () => {
  const env = { POD_NAME: 'shop-7d4b', POD_NAMESPACE: 'payments', NODE_NAME: 'node-1.example.com' };
  expect(readPod(env)).toEqual({ name: 'shop-7d4b', namespace: 'payments', node: 'node-1.example.com' });
});

it('else by what every container has', async () => {
  const file = await temporaryFile('namespace', 'payments\n');
  expect(readPod({}, file)).toEqual({ name: hostname(), namespace: 'payments' });
  expect(readPod({}, '/nonexistent')).toEqual({ name: hostname() });
});

it('what Kubernetes would call nothing is left out', () => {
  const env = { POD_NAME: '<script>', POD_NAMESPACE: 'a'.repeat(300), NODE_NAME: '' };
  expect(readPod(env, '/nonexistent')).toEqual({ name: hostname() });
});
