import { expect, it } from 'vitest';
import { createKeyRing, generateSigningKey } from '../../src/issuer/keys.ts';
import { createIssuerMetrics } from '../../src/issuer/metrics.ts';
import { createTokenService } from '../../src/issuer/token-service.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';

it('an unexpected error is answered with 500, logged, and counted', async () => {
  const clock = new ManualClock();
  const registry = new Registry();
  const { log, lines } = captureLog();
  const endpoint = createTokenService({
    path: '/token',
    realm: 'dx',
    issuer: 'https://sso.example.com/realms/dx',
    authenticate: () => Promise.reject(new Error('a bug')),
    verifyDpop: async () => undefined,
    keys: createKeyRing(await generateSigningKey('EdDSA'), clock),
    tokenLifetimeSeconds: 300,
    maxBodyBytes: 1024,
    metrics: createIssuerMetrics(registry),
    clock,
    log,
    tokenId: () => 'id',
  });
  const answer = await endpoint({
    method: 'POST',
    target: '/token',
    headers: { authorization: ['Basic c2hvcDpzM2NyZXQ='] },
    body: Buffer.from('grant_type=client_credentials'),
    address: '192.0.2.1',
  });
  expect(answer).toMatchObject({ status: 500, body: expect.stringContaining('"error":"server_error"') });
  expect(answer.body).not.toContain('a bug');
  expect(lines.join()).toContain('a bug');
  expect(lines.join()).not.toContain('c2hvcDpzM2NyZXQ');
  expect(await registry.metrics()).toContain('token_sidecar_issuer_tokens_total{result="server_error"} 1');
});
