import { expect, test } from 'vitest';
import { type Manifest, manifests } from './manifests.ts';

const BROKER = [
  'crds.enabled=true',
  'injector.profiles.enabled=true',
  'broker.enabled=true',
  'broker.allSecrets=true',
];

/** The Secrets that a Deployment's pods mount by this volume. */
function mounted(all: readonly Manifest[], deployment: string, volume: string): string | undefined {
  const { spec } = all.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === deployment);
  return spec.template.spec.volumes.find(({ name }: Manifest) => name === volume)?.secret.secretName;
}

test.each([
  ['injector', 'certificates', ['helm', 'cert-manager']],
  ['broker', 'certificates', ['helm', 'cert-manager']],
])(
  'the %s has a Secret for each source, because Helm takes over none that another made',
  async (component, volume, sources) => {
    const names = sources.map(async (source) => {
      const all = await manifests({ set: [...BROKER, `${component}.certificates.source=${source}`] });
      const made = all.filter(
        ({ kind, spec, metadata }) =>
          metadata.name.includes(component) &&
          ((kind === 'Certificate' && spec.isCA !== true) ||
            (kind === 'Secret' && metadata.name.includes('certificate'))),
      );
      const name = mounted(all, `token-sidecar-${component}`, volume);
      expect(made.map(({ spec, metadata }) => spec?.secretName ?? metadata.name)).toEqual([name]);
      return name;
    });
    expect(new Set(await Promise.all(names)).size).toBe(sources.length);
  },
);

test.each([
  ['injector', 'cert-manager-values.yaml'],
  ['broker', 'broker-values.yaml'],
  ['gateway', 'gateway-values.yaml'],
])('the CA that cert-manager keeps for the %s is renewed with the key that it has', async (component, ci) => {
  const name = `token-sidecar-${component}-ca`;
  const all = await manifests({ ci });
  const ca = all.find(({ kind, metadata }) => kind === 'Certificate' && metadata.name === name);
  // cert-manager of 1.18 and later makes another key otherwise, which who trusts the old certificate does not know.
  expect(ca.spec.privateKey.rotationPolicy).toBe('Never');
});
