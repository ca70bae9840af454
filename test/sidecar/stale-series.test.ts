import { expect, it } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { credentialOf, isAbout, routeOf, staleSubjects } from '../../src/sidecar/reconfigure.ts';

const TLS = { caFile: '/c/ca.crt', certFile: '/c/tls.crt', keyFile: '/c/tls.key' };

/** What is looked at of a configuration, with hosts of each kind. */
function configOf(method: string, tls: object): Config {
  const list = [{ host: 'api.test', tls }];
  return {
    routes: [{ name: 'api', tls }],
    credentials: [{ name: 'default', clientAuth: { method }, tls }],
    forwardProxy: { allow: list },
    capture: { hosts: list },
    redirect: { hosts: list },
  } as unknown as Config;
}

const ROUTES = ['api', 'forward:api.test', 'capture:api.test', 'redirect:api.test'];

it('the certificates of a file that is in use no longer are gone, and what had it is not', () => {
  const gone = staleSubjects(configOf('tls_client_auth', TLS), [configOf('client_secret_basic', {})]);
  for (const route of ROUTES) {
    expect(gone.has(routeOf(route))).toBe(false);
    expect(isAbout(gone, { route })).toBe(false);
    for (const file of ['caFile', 'certFile'])
      expect([route, isAbout(gone, { route, file })]).toEqual([route, true]);
  }
  expect(gone.has(credentialOf('default'))).toBe(false);
  for (const file of ['caFile', 'tls.crt']) {
    expect([file, isAbout(gone, { credential: 'default', file })]).toEqual([file, true]);
  }
});

it('files that another configuration still has stay', () => {
  const before = configOf('tls_client_auth', TLS);
  expect(staleSubjects(before, [configOf('client_secret_basic', {}), before])).toEqual(new Set());
});
