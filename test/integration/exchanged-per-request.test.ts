import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { startSidecar } from '../../src/sidecar/sidecar.ts';
import type { StatusReport } from '../../src/sidecar/status/report.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { answer, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

async function start(credential: Record<string, unknown> = {}, route: Record<string, unknown> = {}) {
  const provider = await ScriptedTokenEndpoint.start();
  provider.script = (response) => {
    const subject = provider.received.at(-1)?.form.get('subject_token');
    const body =
      subject === 'eve'
        ? { error: 'invalid_grant', error_description: 'eve is not known' }
        : { access_token: `for-${subject}`, token_type: 'Bearer', expires_in: 300 };
    response.writeHead(subject === 'eve' ? 400 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  const upstream = createServer((request, response) => response.end(request.headers.authorization));
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    upstream.closeAllConnections();
    upstream.close();
  });
  const secret = await mountSecret({ client_id: 'shop', client_secret: 's3cret', actor: 'the-actor' });
  const settings = {
    listen: '127.0.0.1:0',
    admin: { listen: '127.0.0.1:0' },
    credentials: [
      {
        name: 'crm',
        tokenUrl: provider.url,
        dir: secret.directory,
        grant: 'token_exchange',
        audience: 'crm',
        ...credential,
        tokenExchange: { subjectTokenFrom: 'request', ...(credential['tokenExchange'] as object) },
      },
    ],
    routes: [
      {
        name: 'crm',
        upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
        credential: 'crm',
        ...route,
      },
    ],
  };
  const path = await temporaryFile('token-sidecar.json', JSON.stringify(settings));
  const { log, lines } = captureLog();
  const config = await loadConfig({ config: { key: '--config', text: path } });
  const sidecar = await startSidecar({ config, log, quit: () => {} });
  onTestFinished(() => sidecar.stop());
  await sidecar.ready;
  const ask = async (authorization?: string) => {
    const answered = await fetch(`http://${formatAddress(sidecar.proxyAddress)}/`, {
      headers: { connection: 'close', ...(authorization === undefined ? {} : { authorization }) },
    });
    const text = await answered.text();
    return answered.ok ? text : (JSON.parse(text) as { code: string; detail: string });
  };
  const admin = async (place: string) =>
    (await fetch(`http://${formatAddress(sidecar.adminAddress)}${place}`)).text();
  return { provider, ask, admin, lines };
}

it('the token of each request is exchanged, for itself alone, and kept for its next one', async () => {
  const { ask, provider } = await start({ tokenExchange: { actorTokenFile: 'actor' } });
  expect(await ask('Bearer ann')).toBe('Bearer for-ann');
  expect(await Promise.all([ask('bearer bob'), ask('Bearer ann')])).toEqual([
    'Bearer for-bob',
    'Bearer for-ann',
  ]);
  expect(provider.received.map(({ form }) => Object.fromEntries(form))).toEqual(
    ['ann', 'bob'].map((subject) => ({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: subject,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      actor_token: 'the-actor',
      actor_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      audience: 'crm',
    })),
  );
});

it('a request that brings none, or one that is not exchanged, goes nowhere', async () => {
  const { ask, provider, lines, admin } = await start();
  for (const authorization of [undefined, 'Basic YTpi', 'Bearer', 'Bearer a b']) {
    expect(await ask(authorization)).toMatchObject({ code: 'subject_token_missing' });
  }
  expect(provider.received).toEqual([]);
  const refused = await ask('Bearer eve');
  expect(refused).toMatchObject({ code: 'subject_token_refused' });
  expect(await ask('Bearer eve')).toEqual(refused);
  expect(provider.received).toHaveLength(1);
  // Nor is who asked named anywhere: the provider has repeated it.
  const shown = [JSON.stringify(refused), ...lines, await admin('/metrics'), await admin('/api/status')];
  expect(shown.join('\n')).not.toMatch(/\beve\b/);
});

it('one caller for whom the client is rejected turns nobody else away', async () => {
  const { ask, provider } = await start();
  const grants = provider.script;
  provider.script = (response, request) => {
    const isEve = provider.received.at(-1)?.form.get('subject_token')?.startsWith('eve') === true;
    if (isEve) answer(400, JSON.stringify({ error: 'unauthorized_client' }))(response, request);
    else grants(response, request);
  };
  const refused = { code: 'token_unavailable', detail: expect.stringContaining('unauthorized_client') };
  expect(await ask('Bearer eve')).toMatchObject(refused);
  expect(await ask('Bearer eve')).toMatchObject(refused);
  expect(await ask('Bearer ann')).toBe('Bearer for-ann');
  // Who was rejected before another got a token counts no more.
  expect(await ask('Bearer eve-2')).toMatchObject(refused);
  expect(await ask('Bearer bob')).toBe('Bearer for-bob');
  expect(provider.received.map(({ form }) => form.get('subject_token'))).toEqual([
    'eve',
    'ann',
    'eve-2',
    'bob',
  ]);
  // Two after each other: the client is rejected.
  expect(await ask('Bearer eve-3')).toMatchObject(refused);
  expect(await ask('Bearer eve-4')).toMatchObject(refused);
  expect(await ask('Bearer cyd')).toMatchObject(refused);
  expect(provider.received).toHaveLength(6);
  expect(await ask('Bearer ann')).toBe('Bearer for-ann');
});

it('it is ready without anybody having asked, and a provider that is away fails requests alone', async () => {
  const { ask, provider, admin } = await start();
  expect(JSON.parse(await admin('/readyz'))).toEqual({ status: 'ready' });
  provider.script = answer(503, '{}');
  expect(await ask('Bearer ann')).toMatchObject({
    code: 'token_unavailable',
    detail: expect.stringContaining('503'),
  });
  expect(JSON.parse(await admin('/readyz'))).toEqual({ status: 'ready' });
  expect(await admin('/metrics')).toContain(
    'token_sidecar_token_refresh_total{credential="crm",result="unavailable",reason="subject"} 1',
  );
});

it('the status page says so, offers no new token, and tells since when exchanges fail', async () => {
  const { ask, provider, admin } = await start();
  const status = async () => JSON.parse(await admin('/api/status')) as StatusReport;
  expect((await status()).verdict.sentence).toBe(
    'All is well: credential crm exchanges the tokens of requests.',
  );
  const page = await admin('/');
  expect(page).toContain('none is held: that of each request is exchanged');
  expect(page).toContain('api/log-level');
  expect(page).not.toContain('api/renew');
  provider.script = answer(401, JSON.stringify({ error: 'invalid_client' }));
  await ask('Bearer ann');
  expect((await status()).verdict).toMatchObject({ level: 'warning' });
  await ask('Bearer bob');
  const { verdict, credentials } = await status();
  expect(verdict).toMatchObject({
    level: 'failing',
    problems: [
      { what: 'credential crm has exchanged no token of a request', since: credentials[0]?.failingSince },
    ],
  });
  expect(verdict.sentence).not.toContain('in hand');
});

it.each<[Record<string, unknown>, Record<string, unknown>, string]>([
  [
    {},
    { existingAuthorization: 'keep' },
    'routes[0].existingAuthorization: "keep": expected replace: credential crm',
  ],
  [
    { output: { endpoint: true } },
    {},
    'credentials[0].output: expected nothing with tokenExchange.subjectTokenFrom',
  ],
  [
    { tokenExchange: { subjectTokenFile: 'a' } },
    {},
    'credentials[0].tokenExchange.subjectTokenFile: "a": expected nothing with subjectTokenFrom: request',
  ],
])('%j and %j are refused', async (credential, route, message) => {
  await expect(start(credential, route)).rejects.toThrow(message);
});
