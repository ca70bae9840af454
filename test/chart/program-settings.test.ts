import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BROKER_SETTINGS } from '../../src/broker/settings.ts';
import { loadConfig } from '../../src/config/load.ts';
import { PROXY_SETTINGS } from '../../src/config/proxy-settings.ts';
import { environmentName, readSettings, type Settings } from '../../src/config/settings.ts';
import { gateway } from '../../src/gateway/program.ts';
import { INJECTOR_SETTINGS } from '../../src/injector/settings.ts';
import { ISSUER_SETTINGS } from '../../src/issuer/settings.ts';
import { containersOf, type Manifest, manifests, parseManifests, podOf } from './manifests.ts';
import { ROOT } from './tools.ts';

const EXAMPLES = `${ROOT}deploy/examples`;

/** Variables set on a container that are none of the program's settings. */
function unknownSettings(container: Manifest, settings: Settings): string[] {
  const known = Object.keys(settings).map(environmentName);
  return container.env
    .map(({ name }: { name: string }) => name)
    .filter((name: string) => name.startsWith('TOKEN_SIDECAR_') && !known.includes(name));
}

function environment(container: Manifest): Record<string, string> {
  return Object.fromEntries(container.env.map(({ name, value }: Manifest) => [name, value]));
}

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'program-settings-'));
});

afterAll(() => rm(directory, { recursive: true }));

const files = (await readdir(EXAMPLES, { recursive: true })).filter(
  (file) => file.endsWith('.yaml') && !/^(helm-include|injected)\//.test(file),
);

test.each(files)('the program runs by the sidecar settings of %s', async (file) => {
  const all = parseManifests(await readFile(`${EXAMPLES}/${file}`, 'utf8'));
  const sidecars = all
    .flatMap((manifest) => podOf(manifest) ?? [])
    .flatMap(containersOf)
    .filter(({ name }) => name === 'token-sidecar');
  expect(sidecars).toHaveLength(1);

  for (const sidecar of sidecars) {
    expect(unknownSettings(sidecar, PROXY_SETTINGS)).toEqual([]);
    const env = environment(sidecar);
    if (env['TOKEN_SIDECAR_CONFIG'] !== undefined) {
      const config = all.find(({ kind }) => kind === 'ConfigMap').data['token-sidecar.yaml'];
      env['TOKEN_SIDECAR_CONFIG'] = join(directory, 'token-sidecar.yaml');
      await writeFile(env['TOKEN_SIDECAR_CONFIG'], config);
    }

    const config = await loadConfig(readSettings(PROXY_SETTINGS, [], env).given);

    const mounts = sidecar.volumeMounts?.map(({ mountPath }: Manifest) => mountPath) ?? ['/vault/secrets'];
    for (const credential of config.credentials) expect(mounts).toContain(credential.directory);
  }
});

test('the injector of the chart is set by settings that it has', async () => {
  for (const ci of ['self-managed-values.yaml', 'everything-values.yaml']) {
    const injector = (await manifests({ ci })).find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-injector'),
    );
    expect(unknownSettings(injector.spec.template.spec.containers[0], INJECTOR_SETTINGS)).toEqual([]);
  }
});

test('the broker of the chart is set by settings that it has, and the injector by those for it', async () => {
  const all = await manifests({ ci: 'broker-values.yaml' });
  for (const [name, settings] of Object.entries({ broker: BROKER_SETTINGS, injector: INJECTOR_SETTINGS })) {
    const program = all.find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith(`-${name}`),
    );
    expect(unknownSettings(program.spec.template.spec.containers[0], settings)).toEqual([]);
  }
});

test('the gateway of the chart is set by settings that it has', async () => {
  for (const ci of ['gateway-values.yaml', 'gateway-daemonset-values.yaml']) {
    const [container] = (await manifests({ ci }))
      .filter(({ metadata }) => metadata.name.endsWith('-gateway'))
      .flatMap((manifest) => podOf(manifest) ?? [])
      .flatMap(containersOf);
    expect(container.env.length).toBeGreaterThan(0);
    expect(unknownSettings(container, gateway.settings)).toEqual([]);
  }
});

test('the issuer of the chart is set by settings that it has', async () => {
  for (const ci of ['issuer-values.yaml', 'everything-values.yaml']) {
    const issuer = (await manifests({ ci })).find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-issuer'),
    );
    expect(unknownSettings(issuer.spec.template.spec.containers[0], ISSUER_SETTINGS)).toEqual([]);
  }
});
