/** What a profile says of the way out through a proxy, and of tokens that are given out beside it. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { inject } from '../../../src/injector/pod/inject.ts';
import { DEFAULTS } from '../defaults.ts';
import { CREDENTIAL, injectedBy, judged, ROUTE, refusalBy } from './pods-with-profiles.ts';

const PROXY = { url: 'http://proxy.corp:3128', secret: 'proxy-login', noProxy: ['.svc', '10.0.0.0/8'] };
const TOKENS = '/var/run/token-sidecar/tokens';

/** As the sidecar reads it. */
async function understood(configuration: object) {
  const directory = mkdtempSync(join(tmpdir(), 'token-sidecar-profiles-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const text = join(directory, 'token-sidecar.yaml');
  writeFileSync(text, JSON.stringify(configuration));
  return await loadConfig({ config: { key: '--config', text } });
}

function problemsOf(spec: object): readonly string[] {
  const verdict = judged({ name: 'payments', spec });
  if (verdict.state === 'valid') return [];
  return verdict.problems.map(({ key, value, expected }) => `${key}: ${value}: ${expected}`);
}

describe('an egress proxy', () => {
  const spec = {
    credentials: [{ ...CREDENTIAL, egressProxy: PROXY }],
    routes: [{ ...ROUTE, egressProxy: { url: 'http://proxy.corp:3128' } }],
    hosts: [{ host: 'mail.example.com', egressProxy: PROXY }],
  };

  it('is that of a provider, a route and a host, with its Secret mounted once', async () => {
    const { configuration, pod, injection } = injectedBy([{ name: 'payments', spec }]);
    expect(injection.secrets).toEqual(['proxy-login', 'oauth']);
    const volumes = pod.spec.volumes?.filter((volume) => JSON.stringify(volume).includes('proxy-login'));
    expect(volumes).toEqual([
      {
        name: 'token-sidecar-credentials-1',
        projected: {
          defaultMode: 0o440,
          sources: [
            {
              secret: {
                name: 'proxy-login',
                optional: false,
                items: ['username', 'password'].map((key) => ({ key, path: key })),
              },
            },
          ],
        },
      },
    ]);
    const { credentials, routes, forwardProxy } = await understood(configuration);
    const way = { host: 'proxy.corp', port: 3128 };
    const withLogin = {
      ...way,
      credentialsDirectory: '/var/run/secrets/token-sidecar-proxy/1',
      noProxy: PROXY.noProxy,
    };
    expect(credentials[0]?.egressProxy).toEqual(withLogin);
    expect(routes[0]?.egressProxy).toEqual({ ...way, noProxy: [] });
    expect(forwardProxy?.allow[0]?.egressProxy).toEqual(withLogin);
    const mounts = pod.spec.initContainers[0]?.volumeMounts ?? [];
    expect(mounts).toContainEqual({
      name: 'token-sidecar-credentials-1',
      mountPath: '/var/run/secrets/token-sidecar-proxy/1',
      readOnly: true,
    });
  });

  it.each([
    ['https://proxy.corp', 'the URL of an HTTP proxy'],
    ['http://proxy.corp/path', 'the URL of an HTTP proxy'],
    ['http://user:hunter2@proxy.corp', 'the URL of an HTTP proxy'],
  ])('%s is refused, and not repeated', (url, expected) => {
    const [problem, ...others] = problemsOf({
      credentials: [{ ...CREDENTIAL, egressProxy: { url } }],
      routes: [ROUTE],
    });
    expect(others).toEqual([]);
    expect(problem).toContain(`spec.credentials[0].egressProxy.url: undefined: ${expected}`);
    expect(problem).not.toContain('hunter2');
  });

  it('of a TokenProfile is one of the hosts that the operator allows, and of a ClusterTokenProfile any', () => {
    const allowed = {
      authHosts: ['login.example.com', 'http://proxy.corp:3128'],
      upstreamHosts: ['api.example.com', 'mail.example.com'],
    };
    const defaults = { allowed };
    const refusal = refusalBy([{ name: 'payments', spec }], { defaults });
    for (const of of ['routes[0]', 'hosts[0]']) {
      expect(refusal).toContain(
        `TokenProfile payments: spec.${of}.egressProxy.url: "http://proxy.corp:3128": expected a host that the operator allows`,
      );
    }
    expect(refusal).not.toContain('credentials[0]');
    const own = { ...spec, namespaces: { names: ['team'] } };
    expect(refusalBy([{ kind: 'ClusterTokenProfile', name: 'payments', spec: own }], { defaults })).toBe(
      'injected',
    );
    // Whoever limits providers limits where Secrets go.
    const around = { defaults: { allowed: { authHosts: ['login.example.com'] } } };
    expect(refusalBy([{ name: 'payments', spec }], around)).toContain('spec.routes[0].egressProxy.url');
  });
});

describe('an output', () => {
  const credential = { ...CREDENTIAL, output: { file: 'kafka', mode: '0440', group: 2000, endpoint: true } };

  it('is enough without a route, and is a volume in memory that the containers of the app mount', async () => {
    const { configuration, pod } = injectedBy([{ name: 'payments', spec: { credentials: [credential] } }]);
    const { credentials, tokenEndpoint } = await understood(configuration);
    expect(credentials[0]?.output).toEqual({
      file: { path: `${TOKENS}/kafka`, mode: 0o440, group: 2000 },
      endpoint: true,
    });
    expect(tokenEndpoint?.listen).toEqual({ host: '127.0.0.1', port: 15_082 });
    expect(pod.spec.volumes).toContainEqual({
      name: 'token-sidecar-tokens',
      emptyDir: { medium: 'Memory', sizeLimit: '8Mi' },
    });
    const mount = { name: 'token-sidecar-tokens', mountPath: TOKENS };
    expect(pod.spec.initContainers[0]?.volumeMounts).toContainEqual(mount);
    expect(pod.spec.containers[0]?.volumeMounts).toEqual([{ ...mount, readOnly: true }]);
  });

  it('at the endpoint alone mounts nothing', () => {
    const spec = { credentials: [{ ...CREDENTIAL, output: { endpoint: true } }], routes: [ROUTE] };
    const { pod } = injectedBy([{ name: 'payments', spec }]);
    expect(JSON.stringify(pod.spec)).not.toContain('token-sidecar-tokens');
  });

  it('is mounted beside the certificates of interception, also by containers that come later', () => {
    const spec = { credentials: [credential], hosts: [{ host: 'mail.example.com' }] };
    const { pod } = injectedBy([{ name: 'payments', spec }]);
    const mounts = ['token-sidecar-trust', 'token-sidecar-tokens'];
    expect(pod.spec.containers[0]?.volumeMounts?.map(({ name }) => name)).toEqual(mounts);
    expect(inject(pod, { name: 'team' }, DEFAULTS, {})).toMatchObject({ reason: 'already_injected' });
    const later = { ...pod, spec: { ...pod.spec, containers: [...pod.spec.containers, { name: 'late' }] } };
    const second = inject(later, { name: 'team' }, DEFAULTS, {});
    expect(second).toMatchObject({ reason: 'later_containers' });
    for (const name of mounts) expect(JSON.stringify(second)).toContain(name);
  });

  it('is in a volume of the sidecar: a pod that has one of its name is refused', () => {
    const around = { spec: { containers: [{ name: 'app' }], volumes: [{ name: 'token-sidecar-tokens' }] } };
    expect(refusalBy([{ name: 'payments', spec: { credentials: [credential] } }], around)).toContain(
      'spec.volumes[0].name: "token-sidecar-tokens": expected a name that is not one of the sidecar',
    );
  });

  it.each([
    ['a path', { file: '/etc/token' }, 'spec.credentials[0].output.file'],
    ['a mode without a file', { mode: '0440', endpoint: true }, 'spec.credentials[0].output.mode'],
    ['a mode that lets others execute', { file: 'a', mode: '0777' }, 'spec.credentials[0].output.mode'],
    ['an endpoint that is off', { endpoint: false }, 'spec: undefined: routes, hosts or credentials with'],
  ])('of %s is refused', (_, output, key) => {
    const problems = problemsOf({ credentials: [{ ...CREDENTIAL, output }] });
    expect(problems.some((problem) => problem.startsWith(key))).toBe(true);
  });

  it('must be allowed by the operator if hosts are limited, since the app could send the token anywhere', () => {
    const spec = { credentials: [credential], namespaces: { names: ['team'] } };
    const own = { kind: 'ClusterTokenProfile' as const, name: 'payments', spec };
    const refused = 'payments: spec.credentials[0].output: expected nothing, where the operator limits hosts';
    for (const allowed of [{ upstreamHosts: ['a.com'] }, { authHosts: ['login.example.com'] }]) {
      const around = { defaults: { allowed } };
      expect(refusalBy([{ name: 'payments', spec: { credentials: [credential] } }], around)).toContain(
        `TokenProfile ${refused}`,
      );
      expect(refusalBy([own], around)).toBe('injected');
      const annotations = { 'token-sidecar.dev/secret': 'of-somebody-else' };
      expect(refusalBy([own], { ...around, annotations })).toContain(`ClusterTokenProfile ${refused}`);
    }
  });

  it('with the name of another file is refused', () => {
    const spec = {
      credentials: ['kafka', '.kafka.incoming'].map((file, index) => ({
        ...CREDENTIAL,
        name: `c${index}`,
        output: { file },
      })),
    };
    expect(problemsOf(spec)).toEqual([
      `spec.credentials[1].output.file: ${TOKENS}/.kafka.incoming: a name other than .NAME.incoming, by which a file NAME is replaced`,
    ]);
  });

  it('of a static token, the Secret itself, is refused to a tenant if both lists exist', () => {
    const secret = { name: 'of-somebody-else', keys: { token: 'password' } };
    const spec = {
      credentials: [{ grant: 'static', static: { tokenFile: 'token' }, secret, output: { file: 'x' } }],
    };
    const defaults = { allowed: { authHosts: ['login.example.com'], upstreamHosts: ['api.example.com'] } };
    expect(refusalBy([{ name: 'p', spec }])).toBe('injected');
    expect(refusalBy([{ name: 'p', spec }], { defaults })).toContain(
      'TokenProfile p: spec.credentials[0].output',
    );
  });

  it('needs its port and its path: a pod whose app has them is refused', () => {
    const profiles = [{ name: 'payments', spec: { credentials: [credential] } }];
    const refusalOf = (app: object, of = profiles) =>
      refusalBy(of, { spec: { volumes: [{ name: 'own' }], containers: [{ name: 'app', ...app }] } });
    const onPort = { ports: [{ containerPort: 15_082 }] };
    expect(refusalOf(onPort)).toContain(
      'spec.containers[0].ports[0].containerPort: "15082": expected a port other',
    );
    const fileAlone = [
      { name: 'payments', spec: { credentials: [{ ...CREDENTIAL, output: { file: 'a' } }] } },
    ];
    expect(refusalOf(onPort, fileAlone as never)).toBe('injected');
    for (const mountPath of [TOKENS, `${TOKENS}/`]) {
      expect(refusalOf({ volumeMounts: [{ name: 'own', mountPath }] })).toContain(
        `spec.containers[0].volumeMounts[0].mountPath: "${TOKENS}": expected another path`,
      );
    }
  });

  it('in one file of two profiles is refused', () => {
    const profiles = ['one', 'two'].map((name) => ({ name, spec: { credentials: [credential] } }));
    expect(refusalBy(profiles)).toContain(
      `TokenProfile two: spec.credentials[0].output.file: "${TOKENS}/kafka": expected a file that no other credential has`,
    );
  });
});
