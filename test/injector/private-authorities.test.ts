import { describe, expect, it } from 'vitest';
import { type InjectionDefaults, readInjectionDefaults } from '../../src/injector/injection-defaults.ts';
import { inject } from '../../src/injector/pod/inject.ts';
import type { Pod } from '../../src/injector/pod/pod.ts';
import type { Problem } from '../../src/platform/problems.ts';
import { ASKING, DEFAULTS } from './defaults.ts';

const CA = 'token-sidecar.dev/ca-config-map';

const pod = (annotations: Readonly<Record<string, string>>, spec: object = {}): Pod => ({
  metadata: { annotations: { ...ASKING, ...annotations } },
  spec: { containers: [{ name: 'app' }], ...spec },
});

const injected = (one: Pod, defaults: InjectionDefaults = DEFAULTS) =>
  inject(one, { name: 'shop' }, defaults, {});

/** What the patch adds, as text. */
const added = (one: Pod, defaults?: InjectionDefaults): string => JSON.stringify(injected(one, defaults));

describe('CAs of a ConfigMap', () => {
  it.each([
    ['named by the annotation', pod({ [CA]: 'corporate-ca' }), DEFAULTS],
    ['named by the default', pod({}), { ...DEFAULTS, caConfigMap: 'corporate-ca' }],
  ])('%s, are mounted and trusted beside the public ones', (_, one, defaults) => {
    const patch = added(one, defaults);
    expect(patch).toContain('{"name":"NODE_EXTRA_CA_CERTS","value":"/etc/token-sidecar-ca/ca.crt"}');
    expect(patch).toContain(
      '{"name":"token-sidecar-ca","mountPath":"/etc/token-sidecar-ca","readOnly":true}',
    );
    expect(patch).toContain(
      '{"name":"token-sidecar-ca","configMap":{"name":"corporate-ca","optional":false,"items":[{"key":"ca.crt","path":"ca.crt"}]}}',
    );
  });

  it('are not mounted unless they are named', () => {
    expect(added(pod({}))).not.toContain('token-sidecar-ca');
  });

  it('are refused where hosts are limited: with hostAliases any server would be one of them', () => {
    const limited = { ...DEFAULTS, allowed: { upstreamHosts: ['api.example.com'] } };
    expect(injected(pod({ [CA]: 'mine' }), limited)).toMatchObject({
      result: 'rejected',
      message: expect.stringContaining(`${CA}: "mine"`),
    });
  });

  it('are refused as a default where hosts are limited', () => {
    const problems: Problem[] = [];
    const given = (key: string, text: string) => ({ [key]: { key: `--${key}`, text } });
    readInjectionDefaults(
      {
        ...given('default-ca-config-map', 'corporate-ca'),
        ...given('allowed-auth-hosts', 'sso.example.com'),
      },
      problems,
    );
    expect(problems).toMatchObject([{ key: '--default-ca-config-map', value: 'corporate-ca' }]);
  });

  it('have a volume of a name that the pod may not have taken', () => {
    expect(injected(pod({}, { volumes: [{ name: 'token-sidecar-ca' }] }))).toMatchObject({
      result: 'rejected',
      reason: 'unsuitable_pod',
    });
  });

  it('must have a valid name', () => {
    expect(injected(pod({ [CA]: 'Not A Name' }))).toMatchObject({ result: 'rejected' });
  });
});
