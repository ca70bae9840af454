import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  containersOf,
  type Manifest,
  NEWEST_KUBERNETES,
  OLDEST_KUBERNETES,
  only,
  parseManifests,
  rendered,
  SUPPORTED_KUBERNETES,
  template,
} from './manifests.ts';
import { restrictedViolations } from './pod-security.ts';
import { ROOT, run } from './tools.ts';
import { validate } from './validator.ts';

let directory: string;
let chart: string;

/** The example is copied with the chart beside it, because resolving dependencies writes into it. */
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'library-'));
  for (const path of ['charts/token-sidecar', 'deploy/examples/helm-include']) {
    await cp(`${ROOT}${path}`, join(directory, path), { recursive: true });
  }
  chart = join(directory, 'deploy/examples/helm-include');
  const { ok, stderr } = await run('helm', ['dependency', 'build', chart]);
  if (!ok) throw new Error(stderr);
});

afterAll(() => rm(directory, { recursive: true }));

async function pod(kubernetes: string, ...set: string[]): Promise<Manifest> {
  return only(parseManifests(await rendered({ chart, kubernetes, set })), 'Deployment').spec.template;
}

test('the including chart gets nothing but its own Deployment', async () => {
  const all = parseManifests(await rendered({ chart }));

  expect(all.map(({ kind }) => kind)).toEqual(['Deployment']);
});

test.each(SUPPORTED_KUBERNETES)(
  'what it renders is valid on Kubernetes %s and meets the restricted standard',
  async (kubernetes) => {
    const { ok, stdout, stderr } = await validate(
      kubernetes,
      new Map([['shop', await rendered({ chart, kubernetes })]]),
    );

    expect(ok, stdout + stderr).toBe(true);
    expect(restrictedViolations(await pod(kubernetes))).toEqual([]);
  },
);

test('where there are native sidecars it is the first init container', async () => {
  const { spec } = await pod(NEWEST_KUBERNETES);

  expect(spec.initContainers[0]).toMatchObject({ name: 'token-sidecar', restartPolicy: 'Always' });
  expect(spec.containers.map(({ name }: Manifest) => name)).toEqual(['app']);
});

test('where there are none it is the last container', async () => {
  const { spec } = await pod(OLDEST_KUBERNETES);

  expect(spec).not.toHaveProperty('initContainers');
  expect(spec.containers.map(({ name }: Manifest) => name)).toEqual(['app', 'token-sidecar']);
  expect(spec.containers[1]).not.toHaveProperty('restartPolicy');
});

test('the choice can be made by hand', async () => {
  const { spec } = await pod(NEWEST_KUBERNETES, 'tokens.native=false');

  expect(spec.containers.map(({ name }: Manifest) => name)).toEqual(['app', 'token-sidecar']);
});

test('the sidecar can read its Secret: mounted 0440, with the pod in its group', async () => {
  const { spec } = await pod(NEWEST_KUBERNETES);

  expect(spec.securityContext.fsGroup).toBe(spec.initContainers[0].securityContext.runAsGroup);
  expect(spec.volumes).toEqual([
    {
      name: 'token-sidecar-credentials',
      projected: { defaultMode: 0o440, sources: [{ secret: { name: 'shop-oauth', optional: false } }] },
    },
  ]);
  expect(spec.initContainers[0].volumeMounts).toEqual([
    { name: 'token-sidecar-credentials', mountPath: '/var/run/secrets/token-sidecar', readOnly: true },
  ]);
});

test('the image is the one of the depended-on chart, not of the including one', async () => {
  const { spec } = await pod(NEWEST_KUBERNETES);

  expect(spec.initContainers[0].image).toBe('ghcr.io/token-sidecar/token-sidecar:0.1.0');
});

test('on OpenShift it has no user, and its pull Secrets are those of all charts', async () => {
  const { spec } = await pod(
    NEWEST_KUBERNETES,
    'global.compatibility.openshift.adaptSecurityContext=force',
    'global.imagePullSecrets[0].name=registry',
    'global.logLevel=warn',
  );
  const [sidecar] = spec.initContainers;

  expect(sidecar.securityContext).not.toHaveProperty('runAsUser');
  expect(spec.securityContext ?? {}).not.toHaveProperty('fsGroup');
  expect(spec.imagePullSecrets).toEqual([{ name: 'registry' }]);
  expect(sidecar.env).toContainEqual({ name: 'TOKEN_SIDECAR_LOG_LEVEL', value: 'warn' });
});

test('settings of the including chart win over the defaults', async () => {
  const { spec } = await pod(
    NEWEST_KUBERNETES,
    'tokens.resources.requests.cpu=50m',
    'tokens.scope=read write',
    'token-sidecar.sidecar.logLevel=debug',
  );
  const [sidecar] = spec.initContainers;

  expect(sidecar.resources).toEqual({
    requests: { cpu: '50m', memory: '48Mi' },
    limits: { memory: '128Mi' },
  });
  expect(sidecar.env).toContainEqual({ name: 'TOKEN_SIDECAR_SCOPE', value: 'read write' });
  expect(sidecar.env).toContainEqual({ name: 'TOKEN_SIDECAR_LOG_LEVEL', value: 'debug' });
});

test('forward mode points the app at the proxy, and takes its routes from a ConfigMap', async () => {
  const { spec } = await pod(NEWEST_KUBERNETES, 'tokens.mode=forward', 'tokens.configMap=shop-tokens');

  expect(spec.containers[0].env).toContainEqual({ name: 'HTTP_PROXY', value: 'http://127.0.0.1:15080' });
  expect(spec.initContainers[0].env).toContainEqual({
    name: 'TOKEN_SIDECAR_CONFIG',
    value: '/etc/token-sidecar/token-sidecar.yaml',
  });
  expect(spec.volumes).toContainEqual({
    name: 'token-sidecar-config',
    configMap: { name: 'shop-tokens', optional: false },
  });
});

test('beside a ConfigMap the defaults of the chart stay away from its routes and credentials', async () => {
  const { spec } = await pod(
    NEWEST_KUBERNETES,
    'tokens.configMap=shop-tokens',
    'tokens.authUrl=',
    'tokens.upstream=',
    'tokens.scope=read',
    'token-sidecar.sidecar.authUrl=https://default.example.com',
    'token-sidecar.sidecar.upstream=https://default.example.com',
    'token-sidecar.sidecar.audience=default',
  );

  expect(spec.initContainers[0].env.map(({ name }: Manifest) => name)).toEqual([
    'TOKEN_SIDECAR_CONFIG',
    'TOKEN_SIDECAR_SCOPE',
    'TOKEN_SIDECAR_LOG_LEVEL',
    'POD_NAME',
    'POD_NAMESPACE',
    'NODE_NAME',
  ]);
});

test('a sidecar that is not native outlives the app’s last requests, as long as it is told', async () => {
  const commandOf = ({ spec }: Manifest): unknown => spec.containers[1].lifecycle?.preStop.exec.command;

  expect(commandOf(await pod(OLDEST_KUBERNETES))).toEqual(['node', '-e', 'setTimeout(() => {}, 5000)']);
  expect(commandOf(await pod(OLDEST_KUBERNETES, 'tokens.preStopSeconds=2'))).toContain(
    'setTimeout(() => {}, 2000)',
  );
  expect(commandOf(await pod(OLDEST_KUBERNETES, 'tokens.preStopSeconds=0'))).toBeUndefined();
  expect((await pod(NEWEST_KUBERNETES)).spec.initContainers[0]).not.toHaveProperty('lifecycle');
});

test('everything that is missing is reported at once', async () => {
  const { ok, stderr } = await template({
    chart,
    set: ['tokens.secret=', 'tokens.authUrl=', 'tokens.upstream='],
  });

  expect(ok).toBe(false);
  expect(stderr).toContain(
    "token-sidecar: authUrl or tokenUrl: say where tokens come from; upstream: say where the app's requests go; secret: name the Secret with client_id and client_secret",
  );
});

test('two token endpoints are refused', async () => {
  const { ok, stderr } = await template({ chart, set: ['tokens.tokenUrl=https://sso.example.com/token'] });

  expect(ok).toBe(false);
  expect(stderr).toContain('authUrl and tokenUrl: set one of them');
});

test('a token endpoint may have a query, which is not shown where it is refused', async () => {
  const query = '?grant_type=account_credentials&account_id=hidden';
  const set = ['tokens.authUrl='];
  const { spec } = await pod(
    NEWEST_KUBERNETES,
    ...set,
    `tokens.tokenUrl=https://sso.example.com/token${query}`,
  );
  expect(JSON.stringify(spec)).toContain(query);

  const clear = [...set, `tokens.tokenUrl=http://sso.example.com/token${query}`];
  const { ok, stderr } = await template({ chart, set: clear });
  expect(ok).toBe(false);
  expect(stderr).toContain('http://sso.example.com/token?… would carry the client secret in clear');
  expect(stderr).not.toContain('hidden');
});

test('a token endpoint in clear is refused unless it is allowed', async () => {
  const set = ['tokens.authUrl=http://sso.example.com'];

  const { ok, stderr } = await template({ chart, set });
  expect(ok).toBe(false);
  expect(stderr).toContain(
    'allowInsecureTokenUrl: http://sso.example.com would carry the client secret in clear',
  );

  const { spec } = await pod(NEWEST_KUBERNETES, ...set, 'tokens.allowInsecureTokenUrl=true');
  expect(spec.initContainers[0].env).toContainEqual({
    name: 'TOKEN_SIDECAR_ALLOW_INSECURE_TOKEN_URL',
    value: 'true',
  });
});

test('there is one sidecar in the pod', async () => {
  for (const kubernetes of SUPPORTED_KUBERNETES) {
    const names = containersOf(await pod(kubernetes)).map(({ name }) => name);
    expect(names.filter((name) => name === 'token-sidecar')).toHaveLength(1);
  }
});
