import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkUpstream, upstreamsOf } from '../../src/check/upstream.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { ProxyValues } from '../../src/config/proxy-settings.ts';
import { createAuthority } from '../../src/proxy/tls/interception-ca.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { selfSigned } from '../wire/certificate.ts';
import { examination, lines } from './examined.ts';

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function configFor(settings: Readonly<Record<string, string>>): Promise<Config> {
  const given = Object.entries({ 'token-url': 'https://sso.example.com/token', ...settings }).map(
    ([flag, text]) => [flag, { key: `--${flag}`, text }],
  );
  return loadConfig(Object.fromEntries(given) as ProxyValues);
}

async function probed(
  listener: RequestListener,
  { token }: { token: string | undefined } = { token: 'TOKEN' },
) {
  const port = await listening(createServer(listener));
  const config = await configFor({ upstream: `http://127.0.0.1:${port}/v2` });
  const [upstream] = upstreamsOf(config, new Map([['default', '/health?full=1']]));
  if (upstream === undefined) throw new Error('there is no upstream');
  const findings = await checkUpstream(upstream, config, token, examination());
  const text = lines(findings).map((line) => line.replaceAll(`:${port}`, ''));
  expect(text.join()).not.toContain('TOKEN');
  return { findings, text };
}

describe('a request to the upstream', () => {
  it('goes without a token and then with one, below the base path', async () => {
    const asked: (readonly [string | undefined, string | undefined])[] = [];
    const { text } = await probed((request, response) => {
      asked.push([request.url, request.headers.authorization]);
      response.writeHead(request.headers.authorization === 'Bearer TOKEN' ? 200 : 401).end('BODY');
    });
    expect(asked).toEqual([
      ['/v2/health?full=1', undefined],
      ['/v2/health?full=1', 'Bearer TOKEN'],
    ]);
    expect(text.slice(1)).toEqual([
      'ok route default: upstream request: GET http://127.0.0.1/v2/health?… without a token: 401',
      'ok route default: upstream request: GET http://127.0.0.1/v2/health?… with the token: 200',
    ]);
  });

  it('fails where the token is refused, and tells the name of the error alone', async () => {
    const { findings, text } = await probed((request, response) => {
      const given = request.headers.authorization ?? '';
      const challenge = `Bearer error="invalid_token", error_description="audience of ${given}"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end();
    });
    expect(findings[2]).toMatchObject({ verdict: 'failure', failure: 'credentials_rejected' });
    expect(text[2]).toMatch(/with the token: 401 invalid_token → compare audience, scope and issuer/);
  });

  it.each([
    [200, /without a token: 200: it wants none here/, /^ok .*with the token: 200/],
    [403, /^ok .*without a token: 403/, /^warning .*with the token: 403 → give the client the scope/],
    [503, /^ok .*without a token: 503/, /^warning .*with the token: 503 → look at the upstream/],
  ])('is judged by its status: %s', async (status, without, withToken) => {
    const { text } = await probed((_request, response) => void response.writeHead(status).end());
    expect(text[1]).toMatch(without);
    expect(text[2]).toMatch(withToken);
  });

  it('fails where the connection is cut', async () => {
    const { text } = await probed((request) => void request.socket.destroy());
    expect(text[1]).toMatch(/^failure .*upstream request: GET .*: ECONNRESET/);
  });

  it('is not repeated with a token where there is none', async () => {
    expect(
      (await probed((_request, response) => void response.end(), { token: undefined })).text,
    ).toHaveLength(2);
  });

  it('is not sent unless a path is given', async () => {
    let asked = 0;
    const port = await listening(createServer(() => asked++));
    const config = await configFor({ upstream: `http://127.0.0.1:${port}` });
    for (const upstream of upstreamsOf(config, new Map())) {
      await checkUpstream(upstream, config, 'TOKEN', examination());
    }
    expect(asked).toBe(0);
  });

  it('is not sent to an upstream that is not trusted', async () => {
    let asked = 0;
    const port = await listening(createSecureServer(selfSigned('127.0.0.1'), () => asked++));
    const config = await configFor({ upstream: `https://127.0.0.1:${port}` });
    const [upstream] = upstreamsOf(config, new Map([['default', '/health']]));
    const findings = upstream && (await checkUpstream(upstream, config, 'TOKEN', examination()));
    expect(lines(findings ?? []).at(-1)).toMatch(/^failure route default: upstream TLS: /);
    expect(asked).toBe(0);
  });

  it('speaks HTTP/2 where the route does', async () => {
    const server = createHttp2Server();
    server.on('stream', (stream: ServerHttp2Stream, headers) => {
      stream.respond(
        { ':status': headers['authorization'] === 'Bearer TOKEN' ? 200 : 401 },
        { endStream: true },
      );
    });
    const port = await listening(server as unknown as Server);
    const config = await configFor({ upstream: `http://127.0.0.1:${port}`, protocol: 'h2c' });
    const [upstream] = upstreamsOf(config, new Map([['default', '/']]));
    const findings = upstream && (await checkUpstream(upstream, config, 'TOKEN', examination()));
    expect(lines(findings ?? []).slice(1)).toEqual([
      expect.stringMatching(/without a token: 401$/),
      expect.stringMatching(/with the token: 200$/),
    ]);
  });
});

it('has to speak HTTP/2 only with h2c', async () => {
  const port = await listening(createServer());
  const looked = async (protocol: Readonly<Record<string, string>>) => {
    const config = await configFor({ upstream: `http://127.0.0.1:${port}`, ...protocol });
    const [upstream] = upstreamsOf(config, new Map());
    if (upstream === undefined) throw new Error('there is no upstream');
    const [finding] = await checkUpstream(upstream, config, undefined, examination());
    return finding;
  };
  expect(await looked({ protocol: 'h2c' })).toMatchObject({
    verdict: 'failure',
    failure: 'configuration',
    detail: `http://127.0.0.1:${port} does not speak HTTP/2, and the route says protocol: h2c`,
  });
  expect(await looked({})).toMatchObject({ verdict: 'ok' });
});

it('is offered h2 alone where what is allowed as h2c comes over TLS', async () => {
  const port = await listening(createSecureServer(selfSigned('127.0.0.1')));
  const config = await configFor({ upstream: `https://127.0.0.1:${port}` });
  const [upstream] = upstreamsOf(config, new Map());
  if (upstream === undefined) throw new Error('there is no upstream');
  const intercepted = { ...upstream, policy: { ...upstream.policy, protocol: 'h2c' as const } };
  const findings = await checkUpstream(intercepted, config, undefined, examination());
  expect(lines(findings).at(-1)).toMatch(/ that it is offered, h2 \(\w+\) → set protocol: auto$/);
});

describe('an upstream that is the sidecar itself', () => {
  it.each(['127.0.0.1', 'localhost'])('is refused by its address: %s', async (host) => {
    const config = await configFor({ upstream: `http://${host}:15080` });
    for (const isOffline of [true, false]) {
      const [upstream] = upstreamsOf(config, new Map());
      const findings =
        upstream && (await checkUpstream(upstream, config, undefined, examination({ isOffline })));
      expect(lines(findings ?? [])).toEqual([
        expect.stringMatching(
          /^failure route default: destination: http:\/\/\S+:15080 is the sidecar itself/,
        ),
      ]);
    }
  });

  it('is seen behind a name, too, and at the admin listener, which has every address', async () => {
    const config = await configFor({ upstream: 'http://shop.example.com:15081' });
    const [upstream] = upstreamsOf(config, new Map());
    const lookup = (
      _name: string,
      _options: unknown,
      callback: (e: null, found: { address: string; family: number }[]) => void,
    ) => callback(null, [{ address: '127.0.0.1', family: 4 }]);
    const findings =
      upstream &&
      (await checkUpstream(upstream, config, undefined, examination({ lookup: lookup as never })));
    expect(lines(findings ?? []).join('\n')).toContain(
      'http://shop.example.com:15081 is the sidecar itself (admin, [::]:15081)',
    );
  });
});

it('looks at hosts of the forward proxy, but not at patterns of names', async () => {
  const config = await configFor({
    hosts: 'api.example.com,*.example.org,pay.example.com:8443',
    upstream: 'https://a.example.com',
  });
  const found = upstreamsOf(config, new Map()).map(({ subject, upstream }) => [
    subject,
    upstream.protocol,
    upstream.port,
  ]);
  expect(found).toEqual([
    ['route default', 'https', 443],
    ['destination api.example.com', 'https', 443],
    ['destination pay.example.com', 'https', 8443],
  ]);
});

describe('a redirected host, looked at as an app would', () => {
  const HOST = 'localhost';
  async function beside(shows: ReturnType<typeof createAuthority>, root: string) {
    const { chain, key } = shows.issue(HOST, Date.now());
    const port = await listening(createSecureServer({ cert: chain, key }));
    const { directory } = await mountSecret({ 'ca.crt': root });
    const config = await configFor({ 'redirect-hosts': `${HOST}:${port}`, 'trust-dir': directory });
    const findings = await Promise.all(
      upstreamsOf(config, new Map([[`redirect:${HOST}`, '/']])).map((upstream) =>
        checkUpstream(upstream, config, 'TOKEN', examination()),
      ),
    );
    return findings.flat().at(-1);
  }
  const authority = () => createAuthority({ names: [HOST], nowMs: Date.now() });

  it('is hidden by the sidecar, which is no failure, and nothing to trust', async () => {
    const ours = authority();
    expect(await beside(ours, ours.root)).toMatchObject({
      step: 'upstream_tls',
      verdict: 'warning',
      detail: expect.stringMatching(/^the sidecar answers in the place of this host: .*\(user \d+\)/),
      remedy: "to look at the host itself, run check as the sidecar's user",
    });
  });

  it('is not to be trusted where another authority has only its name', async () => {
    expect(await beside(authority(), authority().root)).toMatchObject({
      step: 'upstream_tls',
      verdict: 'failure',
    });
  });
});
