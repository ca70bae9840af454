/** Each verdict on a request for a token: what is answered, logged and counted. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { defineClients } from '../../src/issuer/clients.ts';
import { createKeyRing, generateSigningKey } from '../../src/issuer/keys.ts';
import { createIssuerMetrics } from '../../src/issuer/metrics.ts';
import { Refusal } from '../../src/issuer/refusal.ts';
import { DEFAULT_LIMITS, startTokenListener } from '../../src/issuer/token-listener.ts';
import { createTokenService } from '../../src/issuer/token-service.ts';
import { Registry } from '../../src/platform/prometheus.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';

const [SHOP] = [defineClients([{ clientId: 'shop', clientSecret: 'x', scopes: ['read'] }]).find('shop')];
const FORM = 'application/x-www-form-urlencoded';
const key = await generateSigningKey('EdDSA');

function start(refusal?: Refusal, ms = 0) {
  const clock = new ManualClock();
  const registry = new Registry();
  const { log, lines } = captureLog();
  const asked: unknown[][] = [];
  const service = createTokenService({
    path: '/token',
    realm: 'dx',
    issuer: 'https://sso.example.com/realms/dx',
    async authenticate(...claim) {
      asked.push(claim);
      await clock.advance(ms);
      return { client: refusal ?? (SHOP as never), named: 'shop' };
    },
    verifyDpop: async () => undefined,
    keys: createKeyRing(key, clock),
    tokenLifetimeSeconds: 300,
    maxBodyBytes: 1024,
    metrics: createIssuerMetrics(registry),
    clock,
    log,
    tokenId: () => 'id',
  });
  return {
    clock,
    asked,
    metrics: () => registry.metrics(),
    async ask(change: Partial<Parameters<typeof service>[0]> = {}) {
      const answer = await service({
        method: 'POST',
        target: '/token',
        headers: { authorization: ['Basic x'], 'content-type': [FORM] },
        body: Buffer.from('grant_type=client_credentials'),
        address: '192.0.2.1',
        ...change,
      });
      return {
        ...answer,
        json: JSON.parse(answer.body),
        lines: lines.splice(0).map((line) => JSON.parse(line)),
      };
    },
  };
}

it('an issued token is logged at debug level with its client', async () => {
  const { ask, asked, metrics } = start(undefined, 40);
  const { status, headers, json, lines } = await ask();
  expect([status, headers]).toEqual([200, {}]);
  expect(json).toEqual({
    access_token: expect.stringMatching(/^eyJ/),
    expires_in: 300,
    refresh_expires_in: 0,
    token_type: 'Bearer',
    'not-before-policy': 0,
    scope: 'read',
  });
  expect(asked).toEqual([['Basic x', '192.0.2.1']]);
  expect(lines).toEqual([
    expect.objectContaining({
      level: 'debug',
      msg: 'token issued',
      result: 'issued',
      status: 200,
      client: 'shop',
    }),
  ]);
  expect(await metrics()).toContain('tokens_total{result="issued"} 1');
  expect(await metrics()).toContain('request_duration_seconds_sum{result="issued"} 0.04');
});

describe('refused', () => {
  const headers = (more: object) => ({
    headers: { authorization: ['Basic x'], 'content-type': [FORM], ...more },
  });
  it.each<[string, object, number, string, string | undefined]>([
    ['another path', { target: '/tokens' }, 404, 'not_found', undefined],
    ['a path below', { target: '/token/' }, 404, 'not_found', undefined],
    ['the path of another origin form', { target: 'ftp://x/token' }, 404, 'not_found', undefined],
    ['another method', { method: 'GET' }, 405, 'method_not_allowed', undefined],
    ['two credentials', headers({ authorization: ['a', 'b'] }), 400, 'invalid_request', undefined],
    ['two media types', headers({ 'content-type': [FORM, FORM] }), 400, 'invalid_request', undefined],
    ['another media type', headers({ 'content-type': ['text/plain'] }), 400, 'invalid_request', 'shop'],
    ['no media type', headers({ 'content-type': undefined }), 400, 'invalid_request', 'shop'],
    ['a coding', headers({ 'content-encoding': ['identity', 'gzip'] }), 400, 'invalid_request', 'shop'],
    ['a form that is too large', { body: 'too_large' }, 400, 'invalid_request', 'shop'],
    ['half an escape', { body: Buffer.from('%') }, 400, 'invalid_request', 'shop'],
    ['no grant type', { body: Buffer.from('') }, 400, 'invalid_request', 'shop'],
    [
      'another grant type',
      { body: Buffer.from('grant_type=password') },
      400,
      'unsupported_grant_type',
      'shop',
    ],
    [
      'another scope',
      { body: Buffer.from('grant_type=client_credentials&scope=write') },
      400,
      'invalid_scope',
      'shop',
    ],
    [
      'a scope that is none',
      { body: Buffer.from('grant_type=client_credentials&scope=read++read') },
      400,
      'invalid_scope',
      'shop',
    ],
    [
      'another audience',
      { body: Buffer.from('grant_type=client_credentials&resource=x') },
      400,
      'invalid_target',
      'shop',
    ],
    [
      'another client',
      { body: Buffer.from('grant_type=client_credentials&client_id=bank') },
      400,
      'invalid_request',
      'shop',
    ],
    ...(['client_secret', 'client_assertion', 'client_assertion_type'].map(
      (name) =>
        [
          `a ${name}`,
          { body: Buffer.from(`grant_type=client_credentials&${name}=x`) },
          400,
          'invalid_request',
          'shop',
        ] as const,
    ) as never[]),
  ])('for %s', async (_, change, status, result, client) => {
    const { ask, metrics } = start();
    const answer = await ask(change);
    const error = /^(not_found|method_not_allowed)$/.test(result) ? 'invalid_request' : result;
    expect([answer.status, answer.json.error]).toEqual([status, error]);
    expect(answer.lines).toEqual([
      expect.objectContaining({ level: 'warn', result, status, reason: answer.json.error_description }),
    ]);
    expect(answer.lines[0].client).toBe(client);
    expect(answer.headers).toEqual(status === 405 ? { Allow: 'POST' } : {});
    expect(await metrics()).toContain(`tokens_total{result="${result}"} 1`);
  });

  it('for what its caller could not prove', async () => {
    const { ask } = start(new Refusal('invalid_client', 'why'));
    const { status, headers, lines } = await ask();
    expect([status, headers]).toEqual([401, { 'WWW-Authenticate': 'Basic realm="dx"' }]);
    expect(lines).toEqual([expect.objectContaining({ client: 'shop', reason: 'why' })]);
  });
});

it.each([
  { target: '/token?x=/tokens' },
  { target: 'http://any.example:80/token' },
  { target: 'HTTPS://any.example/token?x' },
  { headers: { 'content-type': [`${FORM.toUpperCase()} ; charset=utf-8`] } },
  { headers: { 'content-type': [FORM], 'content-encoding': ['IDENTITY'] } },
  { body: Buffer.from('grant_type=client_credentials&client_id=shop&scope=read&unknown=1') },
  { body: Buffer.from('grant_type=client_credentials&audience=https%3A%2F%2Fsso.example.com%2Frealms%2Fdx') },
])('%j is understood', async (change) => {
  const { ask } = start();
  expect(await ask(change)).toMatchObject({ status: 200, json: { scope: 'read' } });
});

it('a form that is too large is told how large it may be', async () => {
  const { json } = await start().ask({ body: 'too_large' });
  expect(json.error_description).toBe('the form is larger than 1024 bytes');
});

it('a flood logs one line, like any repeated refusal', async () => {
  const { ask } = start(new Refusal('too_many_requests', 'too many', 7));
  const first = await ask();
  expect(first).toMatchObject({ status: 429, headers: { 'Retry-After': '7' } });
  expect(first.lines).toMatchObject([{ level: 'warn', client: 'shop', reason: 'too many' }]);
  expect((await ask()).lines).toEqual([]);
});

it('metrics of clients and reloads have their last values', async () => {
  const registry = new Registry();
  const metrics = createIssuerMetrics(registry);
  expect(await registry.metrics()).toContain('token_sidecar_issuer_tokens_total{result="issued"} 0');
  metrics.clients(3);
  metrics.reloaded('signing_key', 'failure');
  const text = await registry.metrics();
  expect(text).toContain('token_sidecar_issuer_clients 3');
  expect(text).toContain('token_sidecar_issuer_reload_total{source="signing_key",result="failure"} 1');
});

it('an endpoint that throws closes its connection, and the service goes on', async () => {
  const { log, lines } = captureLog();
  let fails = true;
  const { address, close } = await startTokenListener({
    listen: { host: '127.0.0.1', port: 0 },
    limits: DEFAULT_LIMITS,
    endpointAt: () => async (message) => {
      if (fails) throw new Error('a bug');
      return {
        status: 200,
        headers: {},
        body: JSON.stringify([message.method, message.target, message.address]),
      };
    },
    metrics: createIssuerMetrics(new Registry()),
    clock: new ManualClock(),
    log,
  });
  onTestFinished(() => close(0));
  async function ask(): Promise<string> {
    const socket = connect(address.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
    socket.write('GET /token HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    await once(socket, 'close');
    return text;
  }
  expect(await ask()).toBe('');
  expect(lines.join()).toContain('a bug');
  fails = false;
  expect(await ask()).toContain('["GET","/token","127.0.0.1"]');
});
