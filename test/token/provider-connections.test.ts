import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/platform/time/clock.ts';
import type { CertificateMetrics } from '../../src/platform/x509/certificate-metrics.ts';
import type { ClientCredentials } from '../../src/token/client/client-authentication.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { SURROUNDINGS } from '../support/run-command.ts';
import { RawProvider, type Reaction, tokenAnswer } from './raw-provider.ts';

const authority = createCertificateAuthority('Test CA');

const CREDENTIALS: ClientCredentials = {
  method: 'client_secret_basic',
  encoding: 'form',
  clientId: 'shop',
  clientSecret: 's3cret',
};

/** Sooner than an idle connection ends by itself, so that only what a test is about can have ended it. Milliseconds. */
const BEFORE_IDLE_ENDS = 3000;

/** A provider under TLS and its client; the authority's file can be replaced. */
async function secureClientOf(reaction: Reaction, name = '127.0.0.1', serverName?: string) {
  const provider = await RawProvider.start(reaction, authority.issue('provider', name));
  const trust = await mountSecret({ 'ca.crt': authority.cert });
  const endpoint = createTokenEndpoint(
    credentialConfig({
      tokenUrl: provider.url,
      tls: { caFile: join(trust.directory, 'ca.crt'), ...(serverName === undefined ? {} : { serverName }) },
    }),
    systemClock,
  );
  onTestFinished(() => endpoint.close());
  return {
    provider,
    endpoint,
    request: () => endpoint.requestToken(CREDENTIALS, new AbortController().signal),
    trustAnotherToo: () =>
      trust.update({ 'ca.crt': `${authority.cert}${createCertificateAuthority('Another CA').cert}` }),
  };
}

it('a connection to the provider uses HTTP/1.1 and the configured server name', async () => {
  const asked: unknown[] = [];
  const { request } = await secureClientOf(
    (socket) => {
      const { alpnProtocol, servername } = socket as TLSSocket & { readonly servername: string };
      asked.push({ alpnProtocol, servername });
      socket.write(tokenAnswer());
    },
    'sso.example',
    'sso.example',
  );
  expect(await request()).toMatchObject({ result: 'success' });
  expect(asked).toEqual([{ alpnProtocol: 'http/1.1', servername: 'sso.example' }]);
});

it('the name of the provider is looked up', async () => {
  const provider = await RawProvider.start((socket) => void socket.write(tokenAnswer()));
  const { port } = new URL(provider.url);
  const asked: string[] = [];
  const endpoint = createTokenEndpoint(
    credentialConfig({ tokenUrl: `http://sso.invalid:${port}/token` }),
    systemClock,
    (name, _options, found) => {
      asked.push(name);
      found(null, [{ address: '127.0.0.1', family: 4 }]);
    },
  );
  onTestFinished(() => endpoint.close());
  expect(await endpoint.requestToken(CREDENTIALS, new AbortController().signal)).toMatchObject({
    result: 'success',
  });
  expect(asked).toEqual(['sso.invalid']);
});

it('the certificates in use are reported with their credential', async () => {
  const shop = authority.issue('shop');
  const provider = await RawProvider.start(
    (socket) => void socket.write(tokenAnswer()),
    authority.issue('provider', '127.0.0.1'),
  );
  const trust = await mountSecret({ 'ca.crt': authority.cert });
  const used: unknown[] = [];
  const certificates: CertificateMetrics = { inUse: (...told) => void used.push(told) };
  const endpoint = createTokenEndpoint(
    credentialConfig({ tokenUrl: provider.url, tls: { caFile: join(trust.directory, 'ca.crt') } }),
    systemClock,
    undefined,
    undefined,
    certificates,
  );
  onTestFinished(() => endpoint.close());
  const client = {
    method: 'tls_client_auth',
    clientId: 'shop',
    certificate: shop.cert,
    privateKey: shop.key,
  } as const;
  expect(await endpoint.requestToken(client, new AbortController().signal)).toMatchObject({
    result: 'success',
  });
  expect(used).toEqual([
    [{ credential: 'default' }, 'caFile', 'trust', authority.cert],
    [{ credential: 'default' }, 'tls.crt', 'identity', shop.cert],
  ]);
});

it('a provider with an untrusted certificate gets no request', async () => {
  const provider = await RawProvider.start(
    (socket) => void socket.write(tokenAnswer()),
    authority.issue('provider', '127.0.0.1'),
  );
  const endpoint = createTokenEndpoint(credentialConfig({ tokenUrl: provider.url }), systemClock);
  onTestFinished(() => endpoint.close());
  expect(await endpoint.requestToken(CREDENTIALS, new AbortController().signal)).toEqual({
    result: 'unavailable',
    detail: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  });
  expect(provider.requests).toEqual([]);
});

describe('changed trusted certificates', { timeout: BEFORE_IDLE_ENDS }, () => {
  it('close the idle provider connection', async () => {
    const { provider, request, trustAnotherToo } = await secureClientOf(
      (socket) => void socket.write(tokenAnswer()),
    );
    await request();
    await trustAnotherToo();
    expect(await request()).toMatchObject({ result: 'success' });
    await provider.closed(1);
    expect(provider.requests.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it('let the request in flight finish and then close its connection', async () => {
    const held = Promise.withResolvers<void>();
    const { provider, request, trustAnotherToo } = await secureClientOf(async (socket, number) => {
      if (number === 1) await held.promise;
      socket.write(tokenAnswer());
    });
    const arrived = provider.nextRequest();
    const first = request();
    await arrived;
    await trustAnotherToo();
    expect(await request()).toMatchObject({ result: 'success' });
    held.resolve();
    expect(await first).toMatchObject({ result: 'success' });
    await provider.closed(1);
    expect(provider.requests.map(({ connection }) => connection)).toEqual([1, 2]);
  });
});

describe('an idle provider connection', { timeout: BEFORE_IDLE_ENDS }, () => {
  it('is not kept if the provider would close it within a second', async () => {
    const { provider, request } = await secureClientOf(
      (socket) => void socket.write(tokenAnswer('keep-alive: timeout=1\r\n')),
    );
    expect(await request()).toMatchObject({ result: 'success' });
    await provider.closed(1);
  });

  it('is closed and not reused when the provider sends something on it', async () => {
    const { provider, request } = await secureClientOf((socket) => {
      socket.write(tokenAnswer());
      setImmediate(() => socket.write(tokenAnswer()));
    });
    expect(await request()).toMatchObject({ result: 'success' });
    await provider.closed(1);
  });
});

describe('closing the provider client', { timeout: BEFORE_IDLE_ENDS }, () => {
  it('ends an idle connection', async () => {
    const { provider, endpoint, request } = await secureClientOf(
      (socket) => void socket.write(tokenAnswer()),
    );
    await request();
    await endpoint.close();
    await provider.closed(1);
  });

  it('aborts a request in flight, also on a reused connection, and sends no other', async () => {
    const { provider, endpoint, request } = await secureClientOf(
      (socket, number) => void (number === 1 && socket.write(tokenAnswer())),
    );
    await request();
    const arrived = provider.nextRequest();
    const second = request();
    await arrived;
    await endpoint.close();
    expect(await second).toMatchObject({ result: 'unavailable' });
    await provider.closed(1);
    expect(await request()).toMatchObject({ result: 'unavailable' });
    expect(provider.requests.map(({ connection }) => connection)).toEqual([1, 1]);
  });
});

describe('in a separate process', () => {
  async function loneGrant(tokenUrl: string, env: Readonly<Record<string, string>> = {}) {
    const script = join(import.meta.dirname, 'lone-grant.ts');
    const { stdout } = await promisify(execFile)(process.execPath, [script, tokenUrl], {
      env: { ...SURROUNDINGS, ...env },
    });
    return JSON.parse(stdout);
  }

  it('a kept connection does not delay the exit, and fetch is not loaded', async () => {
    const provider = await RawProvider.start((socket) => void socket.write(tokenAnswer()));
    expect(await loneGrant(provider.url)).toEqual({
      outcome: expect.objectContaining({ result: 'success' }),
      sockets: 0,
      fetchLoaded: false,
      httpLoaded: true,
    });
  });

  it.each(['http', 'https'])('with %s no proxy of the environment is used', async (scheme) => {
    const server = createServer((socket) => socket.destroy());
    let asked = 0;
    server.on('connection', () => asked++);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const proxy = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const certificate = scheme === 'https' ? authority.issue('provider', '127.0.0.1') : undefined;
    const provider = await RawProvider.start((socket) => void socket.write(tokenAnswer()), certificate);
    const trust = await mountSecret({ 'ca.crt': authority.cert });
    const { outcome } = await loneGrant(provider.url, {
      NODE_USE_ENV_PROXY: '1',
      HTTP_PROXY: proxy,
      HTTPS_PROXY: proxy,
      NODE_EXTRA_CA_CERTS: join(trust.directory, 'ca.crt'),
    });
    expect(outcome).toMatchObject({ result: 'success' });
    expect(asked).toBe(0);
  });

  it('no environment variable turns certificate verification off', async () => {
    const provider = await RawProvider.start(
      (socket) => void socket.write(tokenAnswer()),
      authority.issue('provider', '127.0.0.1'),
    );
    const { outcome } = await loneGrant(provider.url, { NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    expect(outcome).toEqual({ result: 'unavailable', detail: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
    expect(provider.requests).toEqual([]);
  });
});
