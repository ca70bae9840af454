import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { readInjectionDefaults } from '../../src/injector/injection-defaults.ts';
import { injectManifests } from '../../src/injector/manifests/inject-manifests.ts';
import { ANNOTATION, MODES, unknownAnnotations } from '../../src/injector/pod/annotations.ts';
import { validate } from '../chart/validator.ts';
import { blocksOfKind } from './blocks.ts';

/** An operator's, who has said where the provider is. */
const DEFAULTS = readInjectionDefaults(
  { 'default-auth-url': { key: '--default-auth-url', text: 'https://sso.example.com' } },
  [],
);

/** The one that kubectl-validate has schemas of by itself. */
const KUBERNETES = '1.30';

async function expectObjects(name: string, text: string): Promise<void> {
  const { ok, stdout, stderr } = await validate(KUBERNETES, new Map([[name.replace(/\W/g, '-'), text]]));
  expect(ok, stdout + stderr).toBe(true);
}

function podWith(spec: object, annotations: Record<string, string> = {}): string {
  const containers = [{ name: 'app', image: 'registry.example.com/shop:1' }];
  return stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'shop', annotations },
    spec: { containers, ...spec },
  });
}

describe('Kubernetes objects', () => {
  it.each(blocksOfKind('manifest'))('%s', async (name, { text }) => {
    await expectObjects(name, text);
  });

  it('are refused where they are wrong', async () => {
    await expect(expectObjects('wrong', podWith({ volumez: [] }))).rejects.toThrow('volumez');
  });
});

describe('a part of a pod', () => {
  it.each(blocksOfKind('pod'))('%s', async (name, { text }) => {
    await expectObjects(name, podWith(parse(text) as object));
  });
});

describe('annotations, which the injector takes', () => {
  it.each(blocksOfKind('annotations'))('%s', async (_, { text }) => {
    const block = parse(text) as { metadata?: { annotations: object }; annotations?: object };
    const annotations = (block.metadata?.annotations ?? block.annotations) as Record<string, string>;
    expect(unknownAnnotations(annotations)).toEqual([]);
    // A profile is of a cluster, which there is not.
    if (annotations[ANNOTATION.profile] !== undefined) return;
    const { problems, text: injected } = injectManifests(podWith({}, annotations), {
      defaults: { ...DEFAULTS, allowedModes: MODES.all },
      cluster: {},
      namespace: 'shop',
    });
    expect(problems).toEqual([]);
    expect(injected).toContain('name: token-sidecar');
  });
});
