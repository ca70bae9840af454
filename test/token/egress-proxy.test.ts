import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { EgressProxyConfig } from '../../src/config/config.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { createTokenEndpoint } from '../../src/token/provider/token-endpoint.ts';
import { whyNoToken } from '../../src/token/why-no-token.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { type ConnectProxyOptions, startConnectProxy } from '../support/connect-proxy.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RawProvider, tokenAnswer } from './raw-provider.ts';

const authority = createCertificateAuthority('Test CA');

/** A provider that is known by its name to the proxy alone. */
async function behindProxy(
  answers: ConnectProxyOptions = {},
  egress: Partial<EgressProxyConfig> = {},
  requestTimeoutMs = 10_000,
) {
  const provider = await RawProvider.start(
    (socket) => socket.write(tokenAnswer()),
    authority.issue('provider', 'sso.test'),
  );
  const trust = await mountSecret({ 'ca.crt': authority.cert });
  const { hostname, port } = new URL(provider.url);
  const proxy = await startConnectProxy({ host: hostname, port: Number(port) }, answers);
  const config = credentialConfig({
    tokenUrl: 'https://sso.test/token',
    tls: { caFile: join(trust.directory, 'ca.crt') },
    egressProxy: { ...proxy.config, ...egress },
    requestTimeoutMs,
  });
  const endpoint = createTokenEndpoint(config, systemClock);
  onTestFinished(() => endpoint.close());
  const request = () =>
    endpoint.requestToken(
      { method: 'client_secret_basic', encoding: 'form', clientId: 'shop', clientSecret: 's3cret' },
      new AbortController().signal,
    );
  return { provider, proxy, request, config };
}

it('a token is requested through the egress proxy on a reused connection, and the proxy sees only ciphertext', async () => {
  const { proxy, request } = await behindProxy();
  expect(await request()).toMatchObject({ result: 'success' });
  expect(await request()).toMatchObject({ result: 'success' });
  expect(proxy.asked).toEqual(['CONNECT sso.test:443 HTTP/1.1\r\nHost: sso.test:443\r\n\r\n']);
});

it('a refusal by the egress proxy is reported with what to do', async () => {
  const { request, config } = await behindProxy({ answer: 'HTTP/1.1 407 No\r\n\r\n' });
  const outcome = await request();
  expect(outcome).toMatchObject({
    result: 'unavailable',
    detail: expect.stringMatching(
      /^the egress proxy 127\.0\.0\.1:\d+ answered CONNECT with 407: check egress/,
    ),
  });
  if (outcome.result === 'success') throw new Error('it was granted');
  expect(whyNoToken(config, { lastFailure: outcome }).advice).toContain('look at egressProxy');
});

it('an egress proxy that does not answer times out', async () => {
  const { request } = await behindProxy({ answer: undefined }, {}, 4000);
  expect(await request()).toMatchObject({ detail: expect.stringContaining('gave no tunnel within 3.8 s') });
});

it('hosts in noProxy are reached directly', async () => {
  const { request, proxy } = await behindProxy({}, { noProxy: ['sso.test'] });
  // Nobody knows the name but the proxy.
  expect(await request()).toMatchObject({ result: 'unavailable' });
  expect(proxy.asked).toEqual([]);
});
