import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

async function load({
  credential = '',
  route = '',
  host = '',
  tokenUrl = 'https://sso.test/token',
  upstream = 'https://api.test',
  connect = 'deny',
}) {
  const text = `
credentials: [{ name: default, tokenUrl: "${tokenUrl}"${credential} }]
routes: [{ name: a, upstream: "${upstream}"${route} }]
forwardProxy: { connect: ${connect}, allow: [{ host: api.test${host} }] }
`;
  const path = await temporaryFile('token-sidecar.yaml', text);
  return await loadConfig({ config: { key: '--config', text: path } });
}

const PROXY = 'egressProxy: { url: "http://proxy.test:3128" }';

it('is of a credential, a route and a host, each by itself', async () => {
  const proxy = { host: 'proxy.test', port: 3128, noProxy: [] };
  const of = async (settings: Parameters<typeof load>[0]) => {
    const { credentials, routes, forwardProxy } = await load(settings);
    return [credentials[0], routes[0], forwardProxy?.allow[0]].map((entry) => entry?.egressProxy);
  };
  expect(await of({})).toEqual([undefined, undefined, undefined]);
  expect(await of({ credential: `, ${PROXY}` })).toEqual([proxy, undefined, undefined]);
  expect(await of({ route: `, ${PROXY}` })).toEqual([undefined, proxy, undefined]);
  expect(await of({ host: `, ${PROXY}` })).toEqual([undefined, undefined, proxy]);
});

it('has credentials and exceptions', async () => {
  const route =
    ', egressProxy: { url: "http://[::1]", credentialsDir: /etc/proxy, noProxy: [ .SVC, a, 10.0.0.0/8, "::1" ] }';
  expect((await load({ route })).routes[0]?.egressProxy).toEqual({
    host: '::1',
    port: 80,
    credentialsDirectory: '/etc/proxy',
    noProxy: ['.svc', 'a', '10.0.0.0/8', '::1'],
  });
});

it.each<[Parameters<typeof load>[0], string]>([
  [{ route: ', egressProxy: {}' }, 'routes[0].egressProxy.url: expected the URL of an HTTP proxy'],
  [
    { route: ', egressProxy: { url: "https://p" }' },
    'routes[0].egressProxy.url: expected the URL of an HTTP proxy',
  ],
  [{ route: ', egressProxy: { url: "http://p/x" }' }, 'routes[0].egressProxy.url: expected'],
  [
    { route: ', egressProxy: { url: "http://p", noProxy: [ "*.svc", 10.0.0.0/33 ] }' },
    'routes[0].egressProxy.noProxy[1]: "10.0.0.0/33": expected a host name, .suffix',
  ],
  [{ route: `, ${PROXY}`, upstream: 'http://api.test' }, 'routes[0].egressProxy: expected an https upstream'],
  [
    { credential: `, ${PROXY}, allowInsecureTokenUrl: true`, tokenUrl: 'http://sso.test/token' },
    'credentials[0].egressProxy: expected an https provider',
  ],
  [
    { host: `, allowClearText: true, ${PROXY}` },
    'forwardProxy.allow[0].egressProxy: expected a host without',
  ],
  [{ host: `, ${PROXY}`, connect: 'tunnel' }, 'forwardProxy.allow[0].egressProxy: expected nothing with'],
])('%j is refused', async (settings, message) => {
  await expect(load(settings)).rejects.toThrow(message);
});

it('a password in its URL is refused, and not repeated', async () => {
  const refused = load({ route: ', egressProxy: { url: "http://user:s3cret@proxy.test" }' });
  await expect(refused).rejects.toThrow('routes[0].egressProxy.url');
  await expect(refused).rejects.not.toThrow('s3cret');
});
