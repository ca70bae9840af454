import { describe, expect, it } from 'vitest';
import type { AllowedDestination, ForwardProxyConfig } from '../../../src/config/config.ts';
import {
  allowedDestination,
  forwardUpstream,
  type RequestedHost,
} from '../../../src/proxy/routing/forward-proxy.ts';

function destination(settings: Partial<AllowedDestination> & { host: string }): AllowedDestination {
  return {
    credential: 'default',
    upgradeToTls: false,
    existingAuthorization: 'replace',
    whenTokenUnavailable: 'fail',
    protocol: 'auto',
    retryOn401: true,
    timeouts: { connectMs: 1, responseMs: 1, idleMs: 1 },
    tls: {},
    ...settings,
  };
}

const list = (...allow: AllowedDestination[]): ForwardProxyConfig => ({
  allow,
  otherHosts: 'deny',
  connect: 'deny',
  timeouts: { connectMs: 1, responseMs: 1, idleMs: 1 },
});

const asked = (host: string, port?: number, scheme: 'http' | 'https' = 'http'): RequestedHost => ({
  scheme,
  host,
  port,
});

describe('a host listed for the forward proxy', () => {
  it.each<[string, RequestedHost, boolean]>([
    ['api.example.com', asked('api.example.com'), true],
    ['api.example.com', asked('api.example.com', 80), true],
    ['api.example.com', asked('api.example.com', 443, 'https'), true],
    ['api.example.com', asked('api.example.com', 8080), false],
    ['api.example.com', asked('api.example.com', 22), false],
    ['api.example.com', asked('xapi.example.com'), false],
    ['api.example.com', asked('api.example.com.evil.test'), false],
    ['*.example.com', asked('a.example.com'), true],
    ['*.example.com', asked('a.b.example.com'), true],
    ['*.example.com', asked('example.com'), false],
    ['*.example.com', asked('.example.com'), false],
    ['*.example.com', asked('badexample.com'), false],
    ['*.example.com', asked('a.example.com.evil.test'), false],
    ['*.example.com', asked('_a-1.example.com'), true],
    ['*.example.com', asked(`${'a'.repeat(63)}.example.com`), true],
    ['*.example.com', asked(`${'a'.repeat(64)}.example.com`), false],
    ['*.example.com', asked(`${'a.'.repeat(121)}example.com`), true],
    ['*.example.com', asked(`${'a.'.repeat(122)}example.com`), false],
    ['*.example.com', asked('a\0.example.com'), false],
    ['*.example.com', asked('a\r\n\r\nget /.example.com'), false],
    ['*.example.com', asked('a/../../b.example.com'), false],
    ['*.example.com', asked('%00.example.com'), false],
    ['*.example.com', asked('a..example.com'), false],
    ['*.example.com', asked('-a.example.com'), false],
    ['*.example.com', asked('\xad.example.com'), false],
    ['[::1]', asked('[::1]'), true],
  ])('%s and %j: %s', (host, where, allowed) => {
    expect(allowedDestination(list(destination({ host })), where) !== undefined).toBe(allowed);
  });

  it('with a port allows that port and uses it by default', () => {
    const config = list(destination({ host: 'api', port: 8443 }));
    expect(allowedDestination(config, asked('api', 8443))).toBeDefined();
    expect(allowedDestination(config, asked('api'))).toBeDefined();
    expect(allowedDestination(config, asked('api', 443))).toBeUndefined();
  });

  it('is the first entry that matches', () => {
    const config = list(
      destination({ host: 'a.example.com', credential: 'one' }),
      destination({ host: '*.example.com', credential: 'two' }),
    );
    expect(allowedDestination(config, asked('a.example.com'))?.credential).toBe('one');
    expect(allowedDestination(config, asked('b.example.com'))?.credential).toBe('two');
  });
});

describe('the forward proxy destination', () => {
  it.each([
    [asked('api'), undefined, 'http', 80, 'api'],
    [asked('api', 80), undefined, 'http', 80, 'api'],
    [asked('api', 8080), undefined, 'http', 8080, 'api:8080'],
    [asked('api', undefined, 'https'), undefined, 'https', 443, 'api'],
    [asked('api'), destination({ host: 'api', upgradeToTls: true }), 'https', 443, 'api'],
    [asked('api', 80), destination({ host: 'api', upgradeToTls: true }), 'https', 443, 'api'],
    [
      asked('api', 8443),
      destination({ host: 'api', port: 8443, upgradeToTls: true }),
      'https',
      8443,
      'api:8443',
    ],
    [asked('api', 80), destination({ host: 'api', port: 80, upgradeToTls: true }), 'https', 443, 'api'],
    [asked('api'), destination({ host: 'api', port: 80, upgradeToTls: true }), 'https', 443, 'api'],
    [asked('api'), destination({ host: 'api', port: 8443 }), 'http', 8443, 'api:8443'],
    [asked('[::1]', 8080), undefined, 'http', 8080, '[::1]:8080'],
  ] as const)('%j', (where, entry, protocol, port, authority) => {
    expect(forwardUpstream(where, entry)).toMatchObject({ protocol, port, authority, basePath: '' });
  });

  it('with an IPv6 address is dialled without the brackets of its authority', () => {
    expect(forwardUpstream(asked('[::1]', 8080)).host).toBe('::1');
  });
});
