import { describe, expect, it } from 'vitest';
import { askHttp2, callers, startGateway, WEB_ENTRY, web } from './running-gateway.ts';

const HOSTS = {
  routes: [
    { name: 'admin', match: { host: 'admin.test' }, upstream: 'http://127.0.0.1:9' },
    { name: 'secret', match: { pathPrefix: '/api/secret' }, upstream: 'http://127.0.0.1:9' },
    { name: 'api', match: { pathPrefix: '/api' }, upstream: 'http://127.0.0.1:9' },
  ],
};

describe('the policy cannot be bypassed', () => {
  it.each<[string, string, string, string]>([
    ['dot segments', 'GET', '/api/../admin/', 'bad_request'],
    ['encoded dot segments', 'GET', '/api/%2e%2e/admin/', 'bad_request'],
    ['an encoded slash', 'GET', '/api/..%2fadmin/', 'bad_request'],
    ['an encoded backslash', 'GET', '/api/..%5cadmin/', 'bad_request'],
    ['parameters of a segment', 'GET', '/api/..;/admin/', 'bad_request'],
    ['the other route', 'GET', '/admin/', 'caller_not_allowed'],
    ['the absolute form', 'GET', 'http://127.0.0.1/admin/', 'destination_not_allowed'],
    ['the absolute form of its own route', 'GET', 'https://gateway.test/api/', 'destination_not_allowed'],
    ['a tunnel', 'CONNECT', '127.0.0.1:443', 'destination_not_allowed'],
    ['all of the server', 'OPTIONS', '*', 'route_not_found'],
  ])('by %s', async (_, method, target, code) => {
    const gateway = await startGateway();
    const text = await gateway.sends(
      web,
      `${method} ${target} HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n\r\n`,
    );
    expect(text.toLowerCase()).toContain(`token-sidecar-error: ${code}`);
    expect(gateway.upstream.requests).toEqual([]);
  });

  it('by double slashes, case or an encoded prefix: what is served is what was allowed', async () => {
    const gateway = await startGateway();
    for (const target of ['//api/', '/API/', '/%61pi/', '/apix/']) {
      expect(await gateway.get(web, target)).toMatchObject({ status: 404, code: 'route_not_found' });
    }
    expect((await gateway.get(web, '/api//admin/')).status).toBe(200);
    expect(gateway.upstream.requests.map(({ url }) => url)).toEqual(['/api//admin/']);
  });

  it('by a Host that differs from the name of the connection, or a second one', async () => {
    const gateway = await startGateway({ file: HOSTS, callers: [WEB_ENTRY] });
    const host = (fields: string) =>
      gateway.sends(web, `GET /api/ HTTP/1.1\r\n${fields}Connection: close\r\n\r\n`);
    expect(await host('Host: admin.test\r\n')).toContain('caller_not_allowed');
    expect(await host('Host: gateway.test\r\nHost: admin.test\r\n')).toContain('bad_request');
    const session = await gateway.http2(web);
    expect(await askHttp2(session, { ':authority': 'admin.test' })).toMatchObject({
      code: 'caller_not_allowed',
    });
    expect(await askHttp2(session, { ':path': '/api/secret/x' })).toMatchObject({
      code: 'caller_not_allowed',
    });
    expect(gateway.upstream.requests).toEqual([]);
  });

  it('by fields from which other gateways take a caller', async () => {
    const gateway = await startGateway();
    const nobody = callers.issue('nobody', 'nobody.test');
    const headers = {
      'x-forwarded-client-cert': 'By=x;URI=spiffe://cluster.local/ns/shop/sa/web',
      'x-forwarded-for': '127.0.0.1',
      'token-sidecar-caller': 'shop/web',
    };
    expect(await gateway.get(nobody, '/api/', { headers })).toMatchObject({ code: 'caller_not_allowed' });
    expect(await gateway.get(undefined, '/api/', { headers })).toMatchObject({ code: 'caller_unknown' });
  });
});

it('an invalid request is answered before the caller is verified, and clear text is refused', async () => {
  const gateway = await startGateway();
  expect(await gateway.sends(undefined, 'NONSENSE\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /);
  await expect(fetch(`http://127.0.0.1:${gateway.port}/api/`)).rejects.toThrow();
  expect(await gateway.metric('gateway_connections_total{result="handshake_failed"}')).toBe(1);
});
