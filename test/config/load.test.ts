import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { PROXY_SETTINGS } from '../../src/config/proxy-settings.ts';
import { readSettings } from '../../src/config/settings.ts';
import { ConfigurationError } from '../../src/platform/problems.ts';

const SIMPLE = {
  TOKEN_SIDECAR_AUTH_URL: 'https://sso.example.com',
  TOKEN_SIDECAR_UPSTREAM: 'https://api.example.com/v2',
};

function load(env: Record<string, string>, args: string[] = []) {
  return loadConfig(readSettings(PROXY_SETTINGS, args, env).given);
}

function configFile(text: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'token-sidecar-config-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'token-sidecar.yaml');
  writeFileSync(path, text);
  return path;
}

const loadFile = (text: string, env: Record<string, string> = {}) =>
  load({ ...env, TOKEN_SIDECAR_CONFIG: configFile(text) });

/** The problems as `key: value: expected` lines. */
async function problemsOf(run: () => Promise<unknown>): Promise<string[]> {
  try {
    await run();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    expect((error as ConfigurationError).exitCode).toBe(78);
    return (error as ConfigurationError).message.split('\n');
  }
  throw new Error('the configuration was accepted');
}

describe('the simple case', () => {
  it('is two variables', async () => {
    const config = await load(SIMPLE);
    expect(config).toMatchObject({
      listen: { host: '127.0.0.1', port: 15_080 },
      admin: { listen: { host: '::', port: 15_081 }, hosts: [] },
      logLevel: 'info',
      credentials: [
        {
          name: 'default',
          tokenUrl: 'https://sso.example.com/realms/dx/protocol/openid-connect/token',
          directory: '/var/run/secrets/token-sidecar',
          clientAuth: { method: 'client_secret_basic', encoding: 'form' },
        },
      ],
      routes: [
        {
          name: 'default',
          match: { pathPrefix: '/' },
          upstream: { authority: 'api.example.com', basePath: '/v2' },
          existingAuthorization: 'replace',
          whenTokenUnavailable: 'fail',
          protocol: 'auto',
          retryOn401: true,
          timeouts: { connectMs: 5000, responseMs: 60_000, idleMs: 300_000 },
        },
      ],
    });
    expect(Object.isFrozen(config.routes[0]?.timeouts)).toBe(true);
  });

  it.each([
    ['http://x', 'h2c'],
    ['https://x', 'h2'],
    ['http://x', 'http1'],
    ['https://x', 'auto'],
  ])('takes for %s the version of HTTP that it names: %s', async (upstream, protocol) => {
    const text =
      `routes: [{ name: a, upstream: "${upstream}", protocol: ${protocol}, match: { pathPrefix: /a } }]\n` +
      `forwardProxy: { allow: [{ host: a.com, allowClearText: ${upstream === 'http://x'}, protocol: ${protocol} }] }`;
    const { routes, forwardProxy } = await loadFile(text, SIMPLE);
    expect(routes[0]?.protocol).toBe(protocol);
    expect(forwardProxy?.allow[0]?.protocol).toBe(protocol);
  });

  it('says what is spoken to the upstream by a flag, before the variable and the file', async () => {
    const env = { ...SIMPLE, TOKEN_SIDECAR_PROTOCOL: 'h2' };
    expect((await load(env)).routes).toMatchObject([{ name: 'default', protocol: 'h2' }]);
    expect((await load(env, ['--protocol', 'http1'])).routes).toMatchObject([{ protocol: 'http1' }]);
    const file =
      'routes: [{ name: a, upstream: "http://a", match: { pathPrefix: /a } },' +
      ' { name: default, upstream: "http://b", protocol: h2c }]\n';
    const { TOKEN_SIDECAR_UPSTREAM: _, ...provider } = SIMPLE;
    expect((await loadFile(file, provider)).routes).toMatchObject([
      { protocol: 'auto' },
      { protocol: 'h2c' },
    ]);
    const { routes } = await loadFile(file, { ...provider, TOKEN_SIDECAR_PROTOCOL: 'http1' });
    expect(routes).toMatchObject([{ protocol: 'auto' }, { protocol: 'http1' }]);
  });

  it.each([
    ['', { maxStreams: 100, streamWindowBytes: 65_536, connectionWindowBytes: 6_553_600 }],
    ['streams: 3', { maxStreams: 3, streamWindowBytes: 65_536, connectionWindowBytes: 196_608 }],
    [
      'streamWindow: 1Mi',
      { maxStreams: 100, streamWindowBytes: 2 ** 20, connectionWindowBytes: 100 * 2 ** 20 },
    ],
    ['streamWindow: 1Gi', { maxStreams: 100, streamWindowBytes: 2 ** 30, connectionWindowBytes: 2 ** 30 }],
    [
      'streamWindow: 128Ki, connectionWindow: 64Ki',
      { maxStreams: 100, streamWindowBytes: 131_072, connectionWindowBytes: 65_536 },
    ],
  ])('bounds connections of HTTP/2: { %s }', async (http2, expected) => {
    const { limits } = await loadFile(`limits: { http2: { ${http2} } }\n`, SIMPLE);
    expect(limits.http2).toEqual(expected);
  });

  it('takes no bound that a client may overstep before it knows of it, or that no one can have', async () => {
    const text = 'limits: { http2: { streams: 0, streamWindow: 65535, connectionWindow: 2Gi } }\n';
    expect(await problemsOf(() => loadFile(text, SIMPLE))).toEqual([
      'limits.http2.streams: "0": expected a whole number from 1 to 2147483647',
      'limits.http2.streamWindow: "65535": expected a size in bytes from 64Ki to 1Gi',
      'limits.http2.connectionWindow: "2Gi": expected a size in bytes from 64Ki to 1Gi',
    ]);
    const many = 'limits: { http2: { streams: 2147483648 } }\n';
    expect(await problemsOf(() => loadFile(many, SIMPLE))).toEqual([
      'limits.http2.streams: "2147483648": expected a whole number from 1 to 2147483647',
    ]);
  });

  it('takes names for the status page from the file, and from the environment before it', async () => {
    const text = 'admin: { hosts: [Status.Example.com] }\n';
    expect((await loadFile(text, SIMPLE)).admin.hosts).toEqual(['status.example.com']);
    const env = { ...SIMPLE, TOKEN_SIDECAR_ADMIN_HOSTS: 'a.example, B.example' };
    expect((await loadFile(text, env)).admin.hosts).toEqual(['a.example', 'b.example']);
    expect(
      await problemsOf(() => load({ ...SIMPLE, TOKEN_SIDECAR_ADMIN_HOSTS: 'https://a.example' })),
    ).toEqual([
      'TOKEN_SIDECAR_ADMIN_HOSTS: "https://a.example": expected host names without ports, by commas',
    ]);
    expect(await problemsOf(() => loadFile('admin: { hosts: ["a.example:443"] }\n', SIMPLE))).toEqual([
      'admin.hosts[0]: "a.example:443": expected a host name or address without port',
    ]);
  });

  it.each([
    ['https://sso/base/', 'dx', 'https://sso/base/realms/dx/protocol/openid-connect/token'],
    ['https://sso', 'my realm', 'https://sso/realms/my%20realm/protocol/openid-connect/token'],
  ])('makes the token URL of %s and realm %s', async (authUrl, realm, tokenUrl) => {
    const env = { ...SIMPLE, TOKEN_SIDECAR_AUTH_URL: authUrl, TOKEN_SIDECAR_REALM: realm };
    expect((await load(env)).credentials[0]?.tokenUrl).toBe(tokenUrl);
  });

  it('takes a whole token URL as it is', async () => {
    const config = await load({
      TOKEN_SIDECAR_TOKEN_URL: 'https://sso/oauth/token',
      TOKEN_SIDECAR_UPSTREAM: 'https://a',
    });
    expect(config.credentials[0]?.tokenUrl).toBe('https://sso/oauth/token');
  });

  it.each(['?api-version=1', '?', '?a=%20b&a=c', '?grant_type=account_credentials&account_id=x'])(
    'takes a token URL with a query as it is: %s',
    async (query) => {
      const config = await load({
        TOKEN_SIDECAR_TOKEN_URL: `https://sso/token${query}`,
        TOKEN_SIDECAR_UPSTREAM: 'https://a',
      });
      expect(config.credentials[0]?.tokenUrl).toBe(`https://sso/token${query}`);
    },
  );

  it.each(['TOKEN_SIDECAR_AUTH_URL', 'TOKEN_SIDECAR_UPSTREAM'])('takes no query in %s', async (name) => {
    const problems = await problemsOf(() => load({ ...SIMPLE, [name]: 'https://sso/?api-version=1' }));
    expect(problems).toEqual([
      `${name}: "https://sso/?…": expected an http or https URL without credentials, query or fragment`,
    ]);
  });
});

describe('the file', () => {
  const FILE = `
listen: 127.0.0.1:1
logLevel: debug
credentials:
  - { name: default, authUrl: https://file.example.com, scope: file }
  - { name: other, tokenUrl: https://other/token }
routes:
  - { name: a, match: { host: A.example.com, pathPrefix: /a/ }, upstream: https://a, credential: other }
  - { name: default, upstream: https://b, timeouts: { connect: 1s } }
`;

  it('is overridden by the environment, which is overridden by flags', async () => {
    const path = configFile(FILE);
    const config = await load(
      { TOKEN_SIDECAR_CONFIG: path, TOKEN_SIDECAR_LISTEN: '127.0.0.1:2', TOKEN_SIDECAR_SCOPE: 'env' },
      ['--scope=flag', '--upstream=https://c'],
    );
    expect(config.listen.port).toBe(2);
    expect(config.logLevel).toBe('debug');
    expect(config.credentials.map(({ scope }) => scope)).toEqual(['flag', undefined]);
    expect(config.routes.map(({ upstream }) => upstream.authority)).toEqual(['a', 'c']);
    expect(config.routes[1]?.timeouts).toEqual({ connectMs: 1000, responseMs: 60_000, idleMs: 300_000 });
    expect(config.routes[0]?.match.host).toBe('a.example.com');
  });

  it.each([
    ['', 'allow'],
    ['crossSiteRequests: allow', 'allow'],
    ['crossSiteRequests: refuse', 'refuse'],
  ])('%j has requests of other sites under %s', async (line, expected) => {
    expect((await loadFile(line, SIMPLE)).crossSiteRequests).toBe(expected);
  });

  it.each([
    ['', undefined],
    ['accessLog: off', undefined],
    ['accessLog: errors', { requests: 'errors', sample: 1 }],
    ['accessLog: all', { requests: 'all', sample: 1 }],
    ['accessLog: all\naccessLogSample: 0.05', { requests: 'all', sample: 0.05 }],
  ])('%j has requests logged as %j', async (line, expected) => {
    expect((await loadFile(line, SIMPLE)).accessLog).toEqual(expected);
  });

  it('may be JSON', async () => {
    const config = await loadFile(JSON.stringify({ routes: [{ name: 'x', upstream: 'https://x' }] }), {
      TOKEN_SIDECAR_AUTH_URL: 'https://sso',
    });
    expect(config.routes[0]?.credential).toBe('default');
  });

  it('has no other credentials when no route uses that of the environment', async () => {
    const config = await loadFile(
      'credentials: [{ name: a, authUrl: https://a }]\nroutes: [{ name: r, upstream: https://r, credential: a }]',
    );
    expect(config.credentials.map(({ name }) => name)).toEqual(['a']);
  });
});

describe('the forward proxy', () => {
  it('needs no route, takes the defaults of one, and uses the credential of the environment', async () => {
    const config = await loadFile(
      'forwardProxy: { allow: [{ host: API.example.com }, { host: "*.example.com", port: 8443, credential: other }] }\n' +
        'credentials: [{ name: other, tokenUrl: https://other/token }]',
      { TOKEN_SIDECAR_AUTH_URL: 'https://sso' },
    );
    expect(config.routes).toEqual([]);
    expect(config.credentials.map(({ name }) => name)).toEqual(['other', 'default']);
    expect(config.forwardProxy).toMatchObject({
      otherHosts: 'deny',
      connect: 'deny',
      allow: [
        {
          host: 'api.example.com',
          upgradeToTls: true,
          credential: 'default',
          existingAuthorization: 'replace',
        },
        { host: '*.example.com', port: 8443, upgradeToTls: true, credential: 'other' },
      ],
    });
  });

  it.each([
    ['{ host: api.example.com }', true],
    ['{ host: 10.0.0.1 }', true],
    ['{ host: "*.example.com", allowClearText: false }', true],
    ['{ host: api.example.com, allowClearText: true }', false],
    ['{ host: api.example.com, upgradeToTls: false }', false],
    ['{ host: api.example.com, upgradeToTls: false, allowClearText: true }', false],
    ['{ host: LocalHost }', false],
    ['{ host: 127.0.0.1, port: 8080 }', false],
    ['{ host: "[::1]" }', false],
    ['{ host: localhost, upgradeToTls: true }', true],
    ['{ host: localhost, allowClearText: false }', true],
  ])('sends what is asked of %s over TLS: %s', async (entry, upgradeToTls) => {
    const config = await loadFile(`forwardProxy: { allow: [${entry}] }`, {
      TOKEN_SIDECAR_AUTH_URL: 'https://sso',
    });
    expect(config.forwardProxy?.allow[0]?.upgradeToTls).toBe(upgradeToTls);
  });

  it.each([
    [
      'an empty list',
      'forwardProxy: { allow: [] }',
      /^forwardProxy.allow: expected a list of at least one host, not an empty list$/,
    ],
    [
      'a bad host',
      'forwardProxy: { allow: [{ host: "*" }] }',
      /^forwardProxy.allow\[0\].host: "\*": expected a host name such as/,
    ],
    [
      'a host with a port in it',
      'forwardProxy: { allow: [{ host: "a:80" }] }',
      /^forwardProxy.allow\[0\].host: "a:80"/,
    ],
    [
      'a host that another covers',
      'forwardProxy: { allow: [{ host: "*.a.com" }, { host: b.a.com }] }',
      /^forwardProxy.allow\[1\].host: "b.a.com": expected a host that forwardProxy.allow\[0\]/,
    ],
    [
      'an unknown credential',
      'forwardProxy: { allow: [{ host: a.com, credential: no }] }',
      /^forwardProxy.allow\[0\].credential: "no"/,
    ],
    [
      'clear text and TLS at once',
      'forwardProxy: { allow: [{ host: a.com, upgradeToTls: true, allowClearText: true }] }',
      /^forwardProxy.allow\[0\].upgradeToTls: "true": expected the opposite of allowClearText/,
    ],
    [
      'interception that nothing asks for',
      'forwardProxy: { allow: [{ host: a.com }] }\ninterception: { directory: /trust }',
      /^interception: expected forwardProxy.connect: intercept beside it/,
    ],
    [
      'addresses alone',
      'forwardProxy: { allow: [{ host: 10.0.0.1 }, { host: "[::1]" }], connect: intercept }',
      /^forwardProxy.connect: "intercept": expected a host with a name/,
    ],
    [
      'HTTP/2 without TLS to a host that is reached over TLS',
      'forwardProxy: { allow: [{ host: a.com, protocol: h2c }] }',
      /^forwardProxy.allow\[0\].protocol: "h2c": expected auto, http1 or h2, as requests to this host leave over TLS/,
    ],
    [
      'HTTP/2 over TLS to a host that is reached without it',
      'forwardProxy: { allow: [{ host: a.com, protocol: h2, allowClearText: true }] }',
      /^forwardProxy.allow\[0\].protocol: "h2": expected auto, http1 or h2c, as requests to this host leave in clear/,
    ],
    [
      'an unknown word for CONNECT',
      'forwardProxy: { allow: [{ host: a.com }], connect: forge }',
      /^forwardProxy.connect: "forge": expected one of deny, tunnel, intercept/,
    ],
  ])('refuses %s', async (_name, text, problem) => {
    expect(await problemsOf(() => loadFile(text, { TOKEN_SIDECAR_AUTH_URL: 'https://sso' }))).toContainEqual(
      expect.stringMatching(problem),
    );
  });

  it('is switched off by one word, and on again, whatever stands beside it', async () => {
    const sections = (connect: string) =>
      `forwardProxy: { allow: [{ host: a.com }], otherHosts: pass, connect: ${connect} }\ninterception: { directory: /trust }`;
    const env = { TOKEN_SIDECAR_AUTH_URL: 'https://sso' };
    expect((await loadFile(sections('tunnel'), env)).interception).toBeUndefined();
    expect((await loadFile(sections('intercept'), env)).interception).toEqual({ directory: '/trust' });
  });

  it('is what named hosts stand for', async () => {
    const { TOKEN_SIDECAR_UPSTREAM: _, ...env } = SIMPLE;
    const hosts = '*.example.com, API.example.com, api.example.com:8443, api.example.com';
    const config = await load({ ...env, TOKEN_SIDECAR_HOSTS: hosts, TOKEN_SIDECAR_TRUST_DIR: '/trust' });
    expect(config.forwardProxy).toMatchObject({ connect: 'intercept', otherHosts: 'pass' });
    // The more specific ones first, each once.
    expect(config.forwardProxy?.allow.map(({ host, port }) => [host, port])).toEqual([
      ['api.example.com', undefined],
      ['api.example.com', 8443],
      ['*.example.com', undefined],
    ]);
    expect(config.interception).toEqual({ directory: '/trust' });
    expect(config.routes).toEqual([]);
  });

  it.each([
    [
      { TOKEN_SIDECAR_HOSTS: 'https://a.com' },
      /^TOKEN_SIDECAR_HOSTS: "https:\/\/a.com": expected 1 to 100 host names/,
    ],
    [
      { TOKEN_SIDECAR_HOSTS: Array.from({ length: 101 }, (_, n) => `h${n}.com`).join() },
      /expected 1 to 100 host names/,
    ],
    [
      { TOKEN_SIDECAR_HOSTS: 'a.com', TOKEN_SIDECAR_TRUST_DIR: 'trust' },
      /^TOKEN_SIDECAR_TRUST_DIR: "trust": expected an absolute/,
    ],
    [
      { TOKEN_SIDECAR_TRUST_DIR: '/trust' },
      /^TOKEN_SIDECAR_TRUST_DIR: "\/trust": expected forwardProxy.connect: intercept/,
    ],
  ])('refuses %j', async (env, problem) => {
    expect(await problemsOf(() => load({ ...SIMPLE, ...env }))).toContainEqual(
      expect.stringMatching(problem),
    );
  });

  it('refuses named hosts beside those of the file', async () => {
    const text = 'forwardProxy: { allow: [{ host: a.com }] }';
    const env = { TOKEN_SIDECAR_AUTH_URL: 'https://sso', TOKEN_SIDECAR_HOSTS: 'b.com' };
    expect(await problemsOf(() => loadFile(text, env))).toContainEqual(
      expect.stringMatching(/^TOKEN_SIDECAR_HOSTS: "b.com": expected nothing beside forwardProxy/),
    );
  });

  it.each([
    ['', '/var/run/token-sidecar/trust'],
    ['interception: { directory: /trust }', '/trust'],
  ])('leaves what apps are to trust in a directory: { %s }', async (more, directory) => {
    const text = `forwardProxy: { allow: [{ host: a.com }], connect: intercept }\n${more}`;
    const config = await loadFile(text, { TOKEN_SIDECAR_AUTH_URL: 'https://sso' });
    expect(config.interception).toEqual({ directory });
    expect(config.forwardProxy?.connect).toBe('intercept');
  });
});

describe('captured hosts', () => {
  const { TOKEN_SIDECAR_UPSTREAM: _, ...SSO } = SIMPLE;

  it('are listened for at 443 and 80, or at the ports that are named', async () => {
    const { capture, interception, routes } = await loadFile(
      `capture:
  hosts:
    - { host: API.example.com, address: 127.0.0.2 }
    - { host: b.com, address: 127.0.0.3, ports: [8443] }
    - { host: c.com, address: "::1", clearPorts: [8080], allowClearText: true, credential: default }`,
      SSO,
    );
    expect(
      capture?.hosts.map(({ host, address, ports, clearPorts, upgradeToTls }) => [
        host,
        address,
        ports,
        clearPorts,
        upgradeToTls,
      ]),
    ).toEqual([
      ['api.example.com', '127.0.0.2', [443], [80], true],
      ['b.com', '127.0.0.3', [8443], [], true],
      ['c.com', '::1', [], [8080], false],
    ]);
    expect(interception).toEqual({ directory: '/var/run/token-sidecar/trust' });
    expect(routes).toEqual([]);
  });

  it('are named by a variable, which makes one entry a host', async () => {
    const text = 'a.com=127.0.0.2, B.com:8443=127.0.0.3, b.com:80=127.0.0.3';
    const { capture } = await load({ ...SSO, TOKEN_SIDECAR_CAPTURE_HOSTS: text });
    expect(capture?.hosts.map(({ host, ports, clearPorts }) => [host, ports, clearPorts])).toEqual([
      ['a.com', [443], [80]],
      ['b.com', [8443], [80]],
    ]);
  });

  it('of which none has TLS want no certificates', async () => {
    const { interception } = await load({ ...SSO, TOKEN_SIDECAR_CAPTURE_HOSTS: 'a.com:80=127.0.0.2' });
    expect(interception).toBeUndefined();
  });

  it.each([
    [
      'a wildcard',
      '{ host: "*.a.com", address: 127.0.0.2 }',
      /host: "\*.a.com": expected an exact host name/,
    ],
    [
      'an address for a name',
      '{ host: 10.0.0.1, address: 127.0.0.2 }',
      /host: "10.0.0.1": expected an exact/,
    ],
    ['a port in the name', '{ host: "a.com:1", address: 127.0.0.2 }', /host: "a.com:1": expected an exact/],
    [
      'an address of the network',
      '{ host: a.com, address: 10.0.0.1 }',
      /address: "10.0.0.1": expected an address of loopback/,
    ],
    [
      'every address',
      '{ host: a.com, address: 0.0.0.0 }',
      /address: "0.0.0.0": expected an address of loopback/,
    ],
    ['no ports', '{ host: a.com, address: 127.0.0.2, ports: [] }', /ports: expected a port/],
    [
      'a port twice',
      '{ host: a.com, address: 127.0.0.2, ports: [1], clearPorts: [1] }',
      /clearPorts: "1": expected a port that is not in ports/,
    ],
    [
      'an egress proxy of what leaves in clear',
      '{ host: a.com, address: 127.0.0.2, clearPorts: [80], allowClearText: true, egressProxy: { url: "http://p:1" } }',
      /egressProxy: expected a host without allowClearText beside it/,
    ],
    [
      'a host twice',
      '{ host: a.com, address: 127.0.0.2 }, { host: a.com, address: 127.0.0.3 }',
      /\[1\].host: "a.com": expected a host that no other/,
    ],
    [
      'an address twice',
      '{ host: a.com, address: 127.0.0.2 }, { host: b.com, address: 127.0.0.2 }',
      /\[1\].address: "127.0.0.2:443": expected an address and port that no other/,
    ],
    [
      'an unknown credential',
      '{ host: a.com, address: 127.0.0.2, credential: nobody }',
      /\[0\].credential: "nobody": expected a credential/,
    ],
    [
      'h2c over TLS',
      '{ host: a.com, address: 127.0.0.2, protocol: h2c }',
      /\[0\].protocol: "h2c": expected auto, http1 or h2/,
    ],
  ])('are refused with %s', async (_name, hosts, problem) => {
    const problems = await problemsOf(() => loadFile(`capture: { hosts: [${hosts}] }`, SSO));
    expect(problems).toContainEqual(expect.stringMatching(problem));
  });

  it.each(['a.com', '*.a.com=127.0.0.2', 'a.com=10.0.0.1', 'a.com=127.0.0.2=1', '', 'a.com=127.0.0.2,'])(
    'are refused as a variable: %j',
    async (text) => {
      const env = { ...SIMPLE, TOKEN_SIDECAR_CAPTURE_HOSTS: text || ' ' };
      expect(await problemsOf(() => load(env))).toContainEqual(
        expect.stringMatching(/^TOKEN_SIDECAR_CAPTURE_HOSTS: ".*": expected 1 to 100 exact host names/),
      );
    },
  );

  it('are refused as a variable beside those of the file', async () => {
    const env = { ...SSO, TOKEN_SIDECAR_CAPTURE_HOSTS: 'a.com=127.0.0.2' };
    const text = 'capture: { hosts: [{ host: b.com, address: 127.0.0.3 }] }';
    expect(await problemsOf(() => loadFile(text, env))).toContainEqual(
      expect.stringMatching(/^TOKEN_SIDECAR_CAPTURE_HOSTS: .* expected nothing beside capture/),
    );
  });
});

describe('hosts of redirected connections', () => {
  const { TOKEN_SIDECAR_UPSTREAM: _, ...SSO } = SIMPLE;

  it('are listed in the file, with what is done for each', async () => {
    const { redirect, interception, routes } = await loadFile(
      'redirect: { port: 15999, hosts: [{ host: API.example.com }, { host: "*.b.com", port: 8443 }] }',
      SSO,
    );
    expect(redirect).toMatchObject({
      port: 15_999,
      hosts: [
        { host: 'api.example.com', upgradeToTls: true, credential: 'default' },
        { host: '*.b.com', port: 8443 },
      ],
    });
    expect(interception).toEqual({ directory: '/var/run/token-sidecar/trust' });
    expect(routes).toEqual([]);
  });

  it('give their timeouts to what passes in no case', async () => {
    const { redirect } = await loadFile(
      'redirect: { hosts: [{ host: a.com, timeouts: { connect: 1s, idle: 1s } }] }',
      SSO,
    );
    expect(redirect?.hosts[0]?.timeouts.idleMs).toBe(1000);
    expect(redirect?.timeouts).toEqual({ connectMs: 5000, responseMs: 60_000, idleMs: 300_000 });
  });

  it('are named by a variable', async () => {
    const { redirect } = await load({ ...SSO, TOKEN_SIDECAR_REDIRECT_HOSTS: '*.a.com, b.com:8443' });
    expect(redirect?.port).toBe(15_083);
    expect(redirect?.hosts.map(({ host, port }) => [host, port])).toEqual([
      ['b.com', 8443],
      ['*.a.com', undefined],
    ]);
  });

  it.each([
    [
      'redirect: { hosts: [{ host: 10.0.0.1 }] }',
      /^redirect\.hosts\[0\]\.host: "10\.0\.0\.1": expected a name/,
    ],
    ['redirect: { hosts: [] }', /^redirect\.hosts: .*expected a list of 1 to 100 hosts/],
    [
      'redirect: { hosts: [{ host: "*.a.com" }, { host: b.a.com }] }',
      /^redirect\.hosts\[1\]\.host: "b\.a\.com"/,
    ],
    [
      'redirect: { port: 0, hosts: [{ host: a.com }] }',
      /^redirect\.port: "0": expected a port from 1 to 65535/,
    ],
  ])('are refused: %s', async (text, problem) => {
    expect(await problemsOf(() => loadFile(text, SSO))).toContainEqual(expect.stringMatching(problem));
  });

  it('are refused as a variable beside those of the file, and a port without any', async () => {
    const text = 'redirect: { hosts: [{ host: b.com }] }';
    const env = { ...SSO, TOKEN_SIDECAR_REDIRECT_HOSTS: 'a.com' };
    expect(await problemsOf(() => loadFile(text, env))).toContainEqual(
      expect.stringMatching(/^TOKEN_SIDECAR_REDIRECT_HOSTS: .* expected nothing beside redirect/),
    );
    expect(await problemsOf(() => load({ ...SIMPLE, TOKEN_SIDECAR_REDIRECT_PORT: '15999' }))).toContainEqual(
      expect.stringMatching(/^TOKEN_SIDECAR_REDIRECT_PORT: "15999": expected hosts beside it/),
    );
  });
});

describe('what is wrong', () => {
  it.each([
    ['forwardProxy.allow[0]', 'forwardProxy: { allow: [{ host: a.com, TLS }] }'],
    ['capture.hosts[0]', 'capture: { hosts: [{ host: a.com, address: 127.0.0.2, TLS }] }'],
    ['redirect.hosts[0]', 'redirect: { hosts: [{ host: a.com, TLS }] }'],
  ])('a file of certificates that is not there, in %s', async (key, text) => {
    const { TOKEN_SIDECAR_UPSTREAM: _, ...env } = SIMPLE;
    const file = text.replace('TLS', 'tls: { caFile: /nonexistent/ca.crt }');
    expect(await problemsOf(() => loadFile(file, env))).toContain(
      `${key}.tls.caFile: "/nonexistent/ca.crt": expected a readable file (ENOENT)`,
    );
  });

  it('is reported all at once, each with key, value and what was expected', async () => {
    const problems = await problemsOf(() =>
      loadFile(
        `
lisen: 127.0.0.1:1
credentials:
  - name: default
    authUrl: http://sso.example.com
    tls: { caFile: /nonexistent/ca.crt }
routes:
  - { name: a, upstream: ftp://x }
  - { name: b, match: { pathPrefix: /x/ }, upstream: https://x, credential: nope }
  - { name: c, match: { pathPrefix: /x/y }, upstream: https://x, timeouts: { connect: 5 } }
`,
        { TOKEN_SIDECAR_LISTEN: 'nowhere' },
      ),
    );
    expect(problems).toEqual([
      'routes[0].upstream: "ftp://x": expected an http or https URL without credentials, query or fragment',
      'routes[2].timeouts.connect: "5": expected a duration such as 500ms, 30s, 5m, 1h or 7d',
      expect.stringMatching(/^lisen: expected a key that there is; did you mean "listen"\?$/),
      'credentials[0].tls.caFile: "/nonexistent/ca.crt": expected a readable file (ENOENT)',
      expect.stringMatching(/^credentials\[0\].authUrl: "http:\/\/sso.example.com": expected https, because/),
      'routes[1].credential: "nope": expected a credential\'s name: default',
      expect.stringMatching(
        /^routes\[2\].match: "\/x\/y": expected requests that routes\[1\] \(b\) does not take/,
      ),
      expect.stringMatching(/^TOKEN_SIDECAR_LISTEN: "nowhere": expected host:port/),
    ]);
  });

  it.each<[string, Record<string, string>, RegExp]>([
    [
      'no identity provider',
      { TOKEN_SIDECAR_UPSTREAM: 'https://a' },
      /^TOKEN_SIDECAR_AUTH_URL: expected the URL/,
    ],
    [
      'no upstream',
      { TOKEN_SIDECAR_AUTH_URL: 'https://a' },
      /^TOKEN_SIDECAR_UPSTREAM: expected a URL, or routes/,
    ],
    [
      'a bad URL',
      { ...SIMPLE, TOKEN_SIDECAR_AUTH_URL: 'sso' },
      /^TOKEN_SIDECAR_AUTH_URL: "sso": expected an http/,
    ],
    [
      'a version of HTTP that there is not',
      { ...SIMPLE, TOKEN_SIDECAR_PROTOCOL: 'h3' },
      /^TOKEN_SIDECAR_PROTOCOL: "h3": expected one of auto, http1, h2, h2c/,
    ],
    [
      'HTTP/2 without TLS to an https URL, both by the environment',
      { ...SIMPLE, TOKEN_SIDECAR_PROTOCOL: 'h2c' },
      /^TOKEN_SIDECAR_PROTOCOL: "h2c": expected auto, http1 or h2, as the upstream is an https URL/,
    ],
    [
      'both URLs',
      { ...SIMPLE, TOKEN_SIDECAR_TOKEN_URL: 'https://t' },
      /^TOKEN_SIDECAR_AUTH_URL: expected nothing beside TOKEN_SIDECAR_TOKEN_URL/,
    ],
    [
      'a bad log level',
      { ...SIMPLE, TOKEN_SIDECAR_LOG_LEVEL: 'loud' },
      /^TOKEN_SIDECAR_LOG_LEVEL: "loud": expected one of trace/,
    ],
    [
      'a missing file',
      { ...SIMPLE, TOKEN_SIDECAR_CONFIG: '/nonexistent.yaml' },
      /^TOKEN_SIDECAR_CONFIG: "\/nonexistent.yaml": expected a readable file \(ENOENT\)/,
    ],
    [
      'a token URL in clear',
      { ...SIMPLE, TOKEN_SIDECAR_AUTH_URL: 'http://sso.example.com' },
      /^TOKEN_SIDECAR_AUTH_URL: .* expected https/,
    ],
  ])('%s', async (_name, env, problem) => {
    expect(await problemsOf(() => load(env))).toEqual([expect.stringMatching(problem)]);
  });

  it.each([
    ['broken YAML', 'routes: [', /token-sidecar.yaml:1:\d+: expected valid YAML or JSON/],
    [
      'a key twice',
      'listen: a:1\nlisten: a:2',
      /:2:1: expected each key once, but this one is in line 1, too$/,
    ],
    ['two keys on a line', 'admin: listen: x', /: one key to a line, .* \(BLOCK_AS_IMPLICIT_KEY\)$/],
    ['indentation by tabs', 'admin:\n\tlisten: x', /: indentation by spaces \(TAB_AS_INDENT\)$/],
    [
      'a wildcard without quotes',
      'forwardProxy: { allow: [{ host: *.example.com }] }',
      /token-sidecar.yaml:1:33: expected an anchor .* quotes around text that begins with \*$/,
    ],
    [
      'aliases that multiply',
      `a: &a [${'x,'.repeat(50)}]\nb: &b [${'*a,'.repeat(50)}]\nc: [${'*b,'.repeat(50)}]`,
      /token-sidecar.yaml:3:\d+: expected at most 100 aliases/,
    ],
    [
      'a mistake without words of ours',
      'listen: &a &b x',
      /: expected valid YAML or JSON \(MULTIPLE_ANCHORS\)$/,
    ],
    [
      'cross-site requests by another word',
      'crossSiteRequests: deny',
      /^crossSiteRequests: "deny": expected one of allow, refuse/,
    ],
    [
      'an access log by another word',
      'accessLog: some',
      /^accessLog: "some": expected one of off, errors, all/,
    ],
    [
      'a part of the access log beyond all of it',
      'accessLog: all\naccessLogSample: 2',
      /^accessLogSample: "2": expected a number from 0 to 1/,
    ],
    [
      'a part of what is not logged',
      'accessLog: errors\naccessLogSample: 0.1',
      /^accessLogSample: "?0.1"?: expected accessLog: all beside it/,
    ],
    ['a list', '- a', /^\(file\): expected a mapping of settings, not a list$/],
    [
      'a route without a name',
      'routes: [{ upstream: https://x }]',
      /^routes\[0\].name: expected a name of 1 to 63/,
    ],
    ['a name unfit for a label', 'routes: [{ name: A_b, upstream: https://x }]', /^routes\[0\].name: "A_b"/],
    [
      'a prefix with dot segments',
      'routes: [{ name: a, upstream: https://x, match: { pathPrefix: /a/../b } }]',
      /^routes\[0\].match.pathPrefix/,
    ],
    [
      'a parameter that has a setting',
      'credentials: [{ name: default, authUrl: https://x, parameters: { scope: a } }]',
      /^credentials\[0\].parameters.scope/,
    ],
    [
      'a certificate without its key',
      'routes: [{ name: a, upstream: https://x, tls: { certFile: /etc/hostname } }]',
      /^routes\[0\].tls.certFile: .*expected a file of PEM|^routes\[0\].tls: expected certFile and keyFile together/,
    ],
    [
      'HTTP/2 without TLS to an https URL',
      'routes: [{ name: a, upstream: https://x, protocol: h2c }]',
      /^routes\[0\].protocol: "h2c": expected auto, http1 or h2, as the upstream is an https URL/,
    ],
    [
      'HTTP/2 over TLS to an http URL',
      'routes: [{ name: a, upstream: http://x, protocol: h2 }]',
      /^routes\[0\].protocol: "h2": expected auto, http1 or h2c, as the upstream is an http URL/,
    ],
    [
      'a version of HTTP that there is not',
      'routes: [{ name: a, upstream: https://x, protocol: h3 }]',
      /^routes\[0\].protocol: "h3": expected one of auto, http1, h2, h2c/,
    ],
    [
      'two of one name',
      'routes: [{ name: a, upstream: https://x, match: { pathPrefix: /a } }, { name: a, upstream: https://x }]',
      /^routes\[1\].name: "a": expected a name that no other entry has/,
    ],
    [
      'client authentication of another kind',
      'credentials: [{ name: default, authUrl: https://x, clientAuth: password }]',
      /^credentials\[0\].clientAuth: "password": expected one of/,
    ],
  ])('%s', async (_name, text, problem) => {
    expect(await problemsOf(() => loadFile(text, SIMPLE))).toContainEqual(expect.stringMatching(problem));
  });

  it('what is spoken to an upstream cannot be said of routes of other names', async () => {
    const { TOKEN_SIDECAR_UPSTREAM: _, ...provider } = SIMPLE;
    const env = { ...provider, TOKEN_SIDECAR_PROTOCOL: 'h2' };
    expect(await problemsOf(() => loadFile('routes: [{ name: a, upstream: https://a }]', env))).toEqual([
      'TOKEN_SIDECAR_PROTOCOL: "h2": expected a route named default, or an upstream beside it: each other route says its own protocol',
    ]);
    expect(await problemsOf(() => load(env))).toEqual([
      expect.stringMatching(/^TOKEN_SIDECAR_UPSTREAM: expected a URL/),
    ]);
  });

  it('allows a token URL in clear on loopback, or where it is asked for', async () => {
    expect(
      (await load({ ...SIMPLE, TOKEN_SIDECAR_AUTH_URL: 'http://127.0.0.1:8080' })).credentials,
    ).toHaveLength(1);
    const clear = { ...SIMPLE, TOKEN_SIDECAR_AUTH_URL: 'http://sso.example.com' };
    expect((await load(clear, ['--allow-insecure-token-url'])).credentials).toHaveLength(1);
    expect(
      await problemsOf(() => load({ ...clear, TOKEN_SIDECAR_ALLOW_INSECURE_TOKEN_URL: 'yes' })),
    ).toContainEqual('TOKEN_SIDECAR_ALLOW_INSECURE_TOKEN_URL: "yes": expected one of true, false');
  });
});

it('a file of six thousand mistakes is judged in time, and a thousand of them are told', async () => {
  const text = `routes:\n${'- { name: A, upstream: x }\n'.repeat(3000)}`;
  const problems = await problemsOf(() => loadFile(text, SIMPLE));
  expect(problems).toHaveLength(1000);
  expect(problems[0]).toMatch(/^routes\[0\].name: "A"/);
}, 30_000);

describe('issuerUrl', () => {
  it.each([
    ['', undefined],
    [', allowInsecureTokenUrl: false', undefined],
    [', allowInsecureTokenUrl: true', true],
  ])(
    'on this machine leads to others in clear text only where that is permitted%s',
    async (more, permitted) => {
      const [credential] = (await withCredential(`issuerUrl: http://127.0.0.1:8080${more}`)).credentials;
      expect(credential?.permitsClearText).toBe(permitted);
    },
  );

  const withCredential = (settings: string, env: Record<string, string> = {}) =>
    loadFile(
      `credentials: [{ name: default, ${settings} }]\nroutes: [{ name: r, upstream: https://r }]`,
      env,
    );

  it('is kept as it is written, and no token URL is made of it', async () => {
    const [credential] = (await withCredential('issuerUrl: https://login.example.com/tenant/')).credentials;
    expect(credential?.issuerUrl).toBe('https://login.example.com/tenant/');
    expect(credential).not.toHaveProperty('tokenUrl');
  });

  it('of the environment takes the place of a provider with its realm', async () => {
    const env = { TOKEN_SIDECAR_TOKEN_URL: 'https://sso/token' };
    const [credential] = (await withCredential('authUrl: https://a, realm: b', env)).credentials;
    expect(credential).toMatchObject({ tokenUrl: 'https://sso/token' });
  });

  it('gives way to the environment', async () => {
    const env = { TOKEN_SIDECAR_TOKEN_URL: 'https://sso/token' };
    const [credential] = (await withCredential('issuerUrl: https://login.example.com', env)).credentials;
    expect(credential).toMatchObject({ tokenUrl: 'https://sso/token' });
    expect(credential).not.toHaveProperty('issuerUrl');
  });

  it.each([
    [
      'issuerUrl: https://a, tokenUrl: https://b',
      'credentials[0].issuerUrl: expected nothing beside tokenUrl',
    ],
    ['issuerUrl: https://a, authUrl: https://b', 'credentials[0].authUrl: expected nothing beside issuerUrl'],
    ['issuerUrl: https://a, realm: b', 'credentials[0].realm: "b": expected nothing beside issuerUrl'],
    ['tokenUrl: https://a/token, realm: b', 'credentials[0].realm: "b": expected nothing beside tokenUrl'],
    [
      'grant: jwt_bearer, jwtBearer: { kind: google_service_account }, scope: a, realm: b',
      'credentials[0].realm: "b": expected nothing without authUrl',
    ],
    [
      'issuerUrl: http://sso.example.com',
      'credentials[0].issuerUrl: "http://sso.example.com": expected https, because',
    ],
    [
      'issuerUrl: http://localhost, clientAuth: tls_client_auth',
      'credentials[0].clientAuth: "tls_client_auth": expected a method that works over http, or an https issuer instead of http://localhost',
    ],
  ])('%s is refused', async (settings, problem) => {
    expect(await problemsOf(() => withCredential(settings))).toEqual([expect.stringContaining(problem)]);
  });
});
