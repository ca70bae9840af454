import { expect, it } from 'vitest';
import {
  isAllowedConfigMap,
  isAllowedHost,
  isAllowedImage,
  limitsAnything,
} from '../../src/injector/pod/allow-lists.ts';
import { inject, SYSTEM_NAMESPACES } from '../../src/injector/pod/inject.ts';
import { ASKING, DEFAULTS } from './defaults.ts';

it.each([
  ['https://a.example', 'a.example:443', true],
  ['https://a.example:8443', '*.example:8443', true],
  ['https://a.example:8443', '*.example', false],
  ['http://a.example', 'http://a.example:80', true],
  ['http://a.example:80', 'http://a.example', true],
  ['http://a.example', 'http://a.example:443', false],
  ['https://a.example:80', 'a.example', false],
  ['http://a.example', 'a.example:80', false],
  ['https://a.example', 'http://a.example:443', false],
  ['https://a.example.', 'a.example:443', true],
])('%s is allowed by %s: %s', (url, entry, allowed) => {
  expect(isAllowedHost(url, [entry])).toBe(allowed);
});

it.each(['ghcr.io/acme//sidecar', 'ghcr.io/acme/./sidecar', 'ghcr.io/acme/..', 'ghcr.io/acme/'])(
  'the image %s is not below a prefix: its path is none',
  (image) => {
    expect(isAllowedImage(image, { images: ['ghcr.io/acme/'] })).toBe(false);
  },
);

it.each([
  ['ghcr.io/acme/sidecar:1.0', true],
  ['ghcr.io/acme/sidecar:1@sha256:abc', true],
  ['ghcr.io/acme/sidecar:1.0:2', false],
  ['ghcr.io:443/acme/sidecar', false],
])('%s is the image of the list: %s', (image, allowed) => {
  expect(isAllowedImage(image, { images: ['ghcr.io/acme/sidecar'] })).toBe(allowed);
});

it('an empty list allows nothing, and without a list everything is allowed', () => {
  expect([{}, { images: [] }, { authHosts: [] }].map(limitsAnything)).toEqual([false, true, true]);
  expect(isAllowedHost('https://a.example', undefined)).toBe(true);
  // No URL, and so no host of a list.
  expect(isAllowedHost('https://1.2.3.4.5', ['*.5'])).toBe(false);
  expect(isAllowedConfigMap('routes', { configMaps: [] })).toBe(false);
  expect(isAllowedConfigMap('routes', { configMaps: ['x', '*'] })).toBe(true);
});

it.each(['kube-system', 'kube-public', 'kube-node-lease'])(
  'pods of %s are left alone, with a word why',
  (name) => {
    expect(SYSTEM_NAMESPACES).toContain(name);
    const pod = { metadata: { annotations: ASKING }, spec: { containers: [{ name: 'app' }] } };
    expect(inject(pod, { name }, DEFAULTS, {})).toMatchObject({
      reason: 'namespace_excluded',
      warnings: [expect.stringContaining(name)],
    });
  },
);

it('a pod without a spec is refused for having no container', () => {
  expect(inject({ metadata: { annotations: ASKING } }, { name: 'team' }, DEFAULTS, {})).toMatchObject({
    reason: 'unsuitable_pod',
  });
});
