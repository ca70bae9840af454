import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/platform/time/clock.ts';
import { parseAssertionKey } from '../../src/token/client/assertion.ts';
import type { ClientCredentials } from '../../src/token/client/client-authentication.ts';
import { StaleConnection, sendProviderRequest } from '../../src/token/provider/provider-request.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { type Certificate, createCertificateAuthority } from '../support/certificate-authority.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RawProvider, type Reaction, tokenAnswer } from './raw-provider.ts';

type SigningClient = Extract<ClientCredentials, { readonly method: 'private_key_jwt' }>;

const authority = createCertificateAuthority('Test CA');
const CERTIFICATE = authority.issue('provider', '127.0.0.1');

const SHARED_SECRET: ClientCredentials = {
  method: 'client_secret_basic',
  encoding: 'form',
  clientId: 'shop',
  clientSecret: 's3cret',
};

function signingClient(): SigningClient {
  const { privateKey } = generateKeyPairSync('ed25519');
  const key = parseAssertionKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  if ('expected' in key) throw new Error(key.expected);
  return { method: 'private_key_jwt', clientId: 'shop', audience: 'https://sso/token', key };
}

async function clientOf(reaction: Reaction, certificate?: Certificate) {
  const provider = await RawProvider.start(reaction, certificate);
  const trust = await mountSecret({ 'ca.crt': authority.cert });
  const endpoint = createTokenEndpoint(
    credentialConfig({ tokenUrl: provider.url, tls: { caFile: join(trust.directory, 'ca.crt') } }),
    systemClock,
  );
  onTestFinished(() => endpoint.close());
  return {
    provider,
    request: (credentials = SHARED_SECRET) =>
      endpoint.requestToken(credentials, new AbortController().signal),
    connectionsOfRequests: () => provider.requests.map(({ connection }) => connection),
  };
}

/** Answers the first request, and does another thing with those after it. */
const afterTheFirst =
  (then: Reaction): Reaction =>
  (socket, request) => {
    if (request === 1) socket.write(tokenAnswer());
    else then(socket, request);
  };

describe('when the provider closes a kept connection as the next request comes', () => {
  it.each([
    ['orderly', (socket) => void socket.end(), undefined],
    ['with a reset', (socket) => void socket.resetAndDestroy(), undefined],
    ['under TLS', (socket) => void socket.destroy(), CERTIFICATE],
  ] as [string, Reaction, Certificate | undefined][])(
    '%s, the grant is sent on a new connection',
    async (_how, close, certificate) => {
      const { request, connectionsOfRequests } = await clientOf(
        (socket, number) => (number === 2 ? close(socket, number) : void socket.write(tokenAnswer())),
        certificate,
      );
      expect(await request()).toMatchObject({ result: 'success' });
      expect(await request()).toMatchObject({ result: 'success' });
      expect(connectionsOfRequests()).toEqual([1, 1, 2]);
      expect(await request()).toMatchObject({ result: 'success' });
      expect(connectionsOfRequests()).toEqual([1, 1, 2, 2]);
    },
  );

  it('the repeated grant has an assertion of its own', async () => {
    const { provider, request } = await clientOf(
      (socket, number) => void (number === 2 ? socket.end() : socket.write(tokenAnswer())),
      CERTIFICATE,
    );
    const client = signingClient();
    await request(client);
    expect(await request(client)).toMatchObject({ result: 'success' });
    const assertions = provider.requests.map(({ text }) => /client_assertion=([^&]+)/.exec(text)?.[1]);
    expect(assertions).toHaveLength(3);
    expect(new Set(assertions).size).toBe(3);
  });

  it('and the failed write is the first sign, the grant is sent on a new connection', async () => {
    const provider = await RawProvider.start((socket) => void socket.write(tokenAnswer()));
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const send = () =>
      sendProviderRequest(
        { url: new URL(provider.url), agent, body: { type: 'text/plain', text: '' } },
        new AbortController().signal,
      );
    const kept = once(agent, 'free');
    await send();
    const [socket] = (await kept) as [Socket];
    const fail = (done: (error: Error) => void) =>
      done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    socket._write = (_bytes, _encoding, done) => fail(done);
    socket._writev = (_chunks, done) => fail(done);
    await expect(send()).rejects.toMatchObject({ constructor: StaleConnection, code: 'EPIPE' });
    expect(await send()).toMatchObject({ status: 200 });
    expect(provider.requests.map(({ connection }) => connection)).toEqual([1, 2]);
  });

  it('twice, the grant is not sent a third time', async () => {
    const { request, connectionsOfRequests } = await clientOf(
      afterTheFirst((socket) => socket.resetAndDestroy()),
    );
    await request();
    expect(await request()).toEqual({ result: 'unavailable', detail: 'ECONNRESET' });
    expect(connectionsOfRequests()).toEqual([1, 1, 2]);
  });

  it.each([
    ['', undefined],
    [', under TLS', CERTIFICATE],
  ])('after an answer began%s, the grant fails', async (_how, certificate) => {
    const { request, connectionsOfRequests } = await clientOf(
      afterTheFirst((socket) => void socket.end('HTTP/1.1 2')),
      certificate,
    );
    await request();
    expect(await request()).toEqual({ result: 'unavailable', detail: 'ECONNRESET' });
    expect(connectionsOfRequests()).toEqual([1, 1]);
  });
});

it('a new connection that the provider closes fails the grant', async () => {
  const { request, connectionsOfRequests } = await clientOf((socket) => void socket.end());
  expect(await request()).toEqual({ result: 'unavailable', detail: 'ECONNRESET' });
  expect(connectionsOfRequests()).toEqual([1]);
});

it('a kept connection that was closed while idle is not reused', async () => {
  const { provider, request, connectionsOfRequests } = await clientOf(
    (socket) => void socket.end(tokenAnswer()),
  );
  await request();
  await provider.closed(1);
  expect(await request()).toMatchObject({ result: 'success' });
  expect(connectionsOfRequests()).toEqual([1, 2]);
});
