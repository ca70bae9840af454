/** What `check` says of hosts whose TLS ends in the sidecar, as an app would see it. */

import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkTime } from '../../src/check/check-all.ts';
import { checkInterception } from '../../src/check/interception.ts';
import type { Config } from '../../src/config/config.ts';
import { createAuthority } from '../../src/proxy/tls/interception-ca.ts';
import { HOST, intercepting, startTlsUpstream } from '../proxy/tls/intercepting.ts';
import { selfSigned } from '../wire/certificate.ts';
import { FakeBearer, FIRST } from '../wire/fake-bearer.ts';
import { examination, lines } from './examined.ts';

const AT_ONCE = 8;

const NOW = () => Date.now();

async function directoryWith(root: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'trust-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'ca.crt'), root);
  await writeFile(join(directory, 'bundle.pem'), [...rootCertificates.slice(0, 3), root].join('\n'));
  return directory;
}

const examined = (config: object, env: Readonly<Record<string, string>> = {}, path?: string, user = 1000) =>
  checkInterception({ config: config as Config, env, path, user }, examination()).then(lines);

async function byProxy(settings: Parameters<typeof intercepting>[1] = {}) {
  const upstream = await startTlsUpstream();
  const interception = await intercepting(upstream, settings);
  const { port } = upstream;
  const directory = await directoryWith(interception.root);
  const config = {
    interception: { directory },
    listen: interception.sidecar.address,
    forwardProxy: { connect: 'intercept', allow: [{ host: HOST, port }, { host: '*.example.net' }] },
  };
  return { upstream, interception, directory, config, port };
}

describe('a host of the forward proxy', () => {
  it('is captured, and has its token where a path is asked for', async () => {
    const { config, upstream, directory, port } = await byProxy();
    expect(await examined(config, {}, '/health?secret=1')).toEqual([
      `ok interception: authority: ${directory} has the root of the sidecar's last start`,
      'ok interception: trust: none of the variables of trust is set here: look in a container of the app for those',
      `ok host ${HOST}: capture: ${HOST}:${port} comes to the sidecar by the forward proxy`,
      `ok host ${HOST}: captured request: GET https://${HOST}:${port}/health?… as an app: 200`,
    ]);
    expect(upstream.arrived.map(({ path, authorization }) => [path, authorization])).toEqual([
      ['/health?secret=1', FIRST],
    ]);
  });

  it('is asked for nothing without a path', async () => {
    const { config, upstream } = await byProxy();
    expect(await examined(config)).toHaveLength(3);
    expect(upstream.arrived).toEqual([]);
  });

  it('has none where the sidecar has none', async () => {
    const { config } = await byProxy({ bearer: new FakeBearer({ held: undefined }) });
    expect((await examined(config, {}, '/')).at(-1)).toMatch(
      /^failure host .*as an app: 503 token_unavailable → look up token_unavailable/,
    );
  });

  it('is not captured where nobody listens', async () => {
    const { config, interception } = await byProxy();
    await interception.sidecar.proxy.drain(0);
    expect((await examined(config)).at(-1)).toMatch(
      /^warning host .*: capture: .*ECONNREFUSED → start the sidecar/,
    );
  });
});

it('hosts are looked at a few at a time: silent ones hold up nobody else for long', async () => {
  const hosts = Array.from({ length: AT_ONCE + 2 }, (_, index) => `host${index}.example`);
  const open = new Set<Socket>();
  let most = 0;
  let left = hosts.length;
  const server = createServer((socket) => {
    open.add(socket.on('error', () => undefined).on('close', () => open.delete(socket)));
    most = Math.max(most, open.size);
    if (open.size < Math.min(AT_ONCE, left)) return;
    left -= open.size;
    for (const each of open) each.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { root } = createAuthority({ names: ['host0.example'], nowMs: NOW() });
  const found = await examined({
    interception: { directory: await directoryWith(root) },
    listen: { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    forwardProxy: { connect: 'intercept', allow: hosts.map((host) => ({ host })) },
  });
  expect(found.slice(2)).toEqual(
    hosts.map((host) =>
      expect.stringMatching(new RegExp(`^warning host ${host}: capture: .*(?:ECONNRESET|connection ended)`)),
    ),
  );
  expect(most).toBe(AT_ONCE);
});

describe('where the time is up amid the hosts', () => {
  it('says so in place of a verdict on hosts that nobody had the time to ask', async () => {
    const time = new AbortController();
    const silent = createServer(() => time.abort()).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    onTestFinished(() => void silent.close());
    const { root } = createAuthority({ names: [HOST], nowMs: NOW() });
    const config = {
      interception: { directory: await directoryWith(root) },
      listen: { host: '127.0.0.1', port: (silent.address() as AddressInfo).port },
      forwardProxy: {
        connect: 'intercept',
        allow: ['a.example', 'b.example', 'c.example'].map((host) => ({ host })),
      },
    } as unknown as Config;
    const hurried = examination({ signal: time.signal });
    const found = await checkInterception({ config, env: {}, path: undefined, user: 1000 }, hurried);

    expect(found.filter(({ verdict }) => verdict !== 'ok')).toEqual([]);
    expect(lines(checkTime(hurried))).toEqual([
      expect.stringMatching(/^failure time: the time for all steps was up → .*--check-timeout/),
    ]);
    expect(checkTime(examination())).toEqual([]);
  });
});

describe('a host that leads elsewhere', () => {
  it.each([
    [
      'hosts file',
      { capture: { hosts: [{ host: 'localhost', address: '127.0.0.9', ports: [0] }] } },
      /hostAliases/,
    ],
    [
      'kernel',
      { redirect: { hosts: [{ host: 'localhost', port: 0 }] } },
      /`token-sidecar redirect` .*this is user 1000/,
    ],
  ])('is told with whose certificate was shown: %s', async (_, mode, remedy) => {
    const upstream = await startTlsUpstream('http1', selfSigned('localhost'));
    const { root } = createAuthority({ names: ['localhost'], nowMs: NOW() });
    const config = JSON.parse(
      JSON.stringify({ interception: { directory: await directoryWith(root) }, ...mode }),
    );
    for (const host of [...(config.capture?.hosts ?? []), ...(config.redirect?.hosts ?? [])]) {
      if (host.ports === undefined) host.port = upstream.port;
      else host.ports = [upstream.port];
    }
    const last = (await examined(config)).at(-1);
    expect(last).toMatch(
      /^warning host localhost: capture: .* shows a certificate of .*, and not the sidecar's/,
    );
    expect(last).toMatch(remedy);
  });
});

describe('variables', () => {
  it('are trusted by what their files hold', async () => {
    const { config, directory } = await byProxy();
    const other = join(directory, 'other.pem');
    await writeFile(other, rootCertificates.slice(0, 2).join('\n'));
    const earlier = join(directory, 'earlier.pem');
    await writeFile(earlier, createAuthority({ names: [HOST], nowMs: NOW() }).root);
    const found = await examined(config, {
      NODE_EXTRA_CA_CERTS: join(directory, 'ca.crt'),
      SSL_CERT_FILE: join(directory, 'bundle.pem'),
      REQUESTS_CA_BUNDLE: other,
      DENO_CERT: earlier,
      PIP_CERT: join(directory, 'gone.pem'),
    });
    expect(found).toContain(
      'ok interception: trust: the sidecar is trusted by NODE_EXTRA_CA_CERTS, SSL_CERT_FILE',
    );
    expect(found).toContainEqual(
      expect.stringMatching(
        /REQUESTS_CA_BUNDLE: .*other\.pem lacks the sidecar's root → .*Python requests will not trust/,
      ),
    );
    expect(found).toContainEqual(expect.stringMatching(/DENO_CERT: .*has the root of an earlier start/));
    expect(found).toContainEqual(expect.stringMatching(/PIP_CERT: .*gone\.pem: ENOENT/));
  });

  it('of the sidecar itself is no fault: where it runs, it names whom it trusts', async () => {
    const { config, directory } = await byProxy();
    const corporate = join(directory, 'corporate.pem');
    await writeFile(corporate, rootCertificates[0] as string);
    const found = await examined(config, { NODE_EXTRA_CA_CERTS: corporate });
    expect(found.filter((line) => line.startsWith('warning'))).toEqual([]);
    expect(found).toContain(
      `ok interception: trust: NODE_EXTRA_CA_CERTS is the sidecar's own here: it trusts ${corporate} in upstreams, and bundle.pem has that for apps, too`,
    );
  });

  it('that lack the same are one finding', async () => {
    const { config, directory } = await byProxy();
    const other = join(directory, 'other.pem');
    await writeFile(other, rootCertificates[0] as string);
    const found = await examined(config, { SSL_CERT_FILE: other, GIT_SSL_CAINFO: other });
    expect(found.filter((line) => line.startsWith('warning'))).toEqual([
      expect.stringMatching(
        /trust: SSL_CERT_FILE, GIT_SSL_CAINFO: .* → set each to \S+\/bundle\.pem, or .*, git will not/,
      ),
    ]);
  });

  it('override one another', async () => {
    const { config, directory } = await byProxy();
    const other = join(directory, 'other.pem');
    await writeFile(other, rootCertificates.slice(0, 2).join('\n'));
    const found = await examined(config, {
      CURL_CA_BUNDLE: other,
      SSL_CERT_FILE: join(directory, 'bundle.pem'),
    });
    expect(found).toContainEqual(
      expect.stringMatching(
        /^warning interception: overriding: CURL_CA_BUNDLE overrides SSL_CERT_FILE for curl/,
      ),
    );
  });

  it('of the proxy lead past the sidecar, and show no password', async () => {
    const { config, interception } = await byProxy();
    const own = `http://127.0.0.1:${interception.sidecar.address.port}`;
    const found = await examined(config, {
      HTTPS_PROXY: 'http://me:pass@proxy.corp:3128',
      https_proxy: own,
      NO_PROXY: 'localhost, .example.com',
    });
    expect(found).toContainEqual(expect.stringMatching(/overriding: HTTPS_PROXY names another proxy/));
    expect(found).toContainEqual(expect.stringMatching(new RegExp(`overriding: NO_PROXY excludes ${HOST}`)));
    expect(found.join()).not.toContain('pass@');
    expect(found.join()).not.toContain('https_proxy names');
  });
});

it('nothing is looked at where no sidecar has left its root', async () => {
  const config = { interception: { directory: '/nowhere' }, redirect: { hosts: [{ host: HOST }] } };
  expect(await examined(config)).toEqual([
    expect.stringMatching(
      /^warning interception: authority: \/nowhere\/ca\.crt: ENOENT → look where a sidecar runs/,
    ),
  ]);
});
