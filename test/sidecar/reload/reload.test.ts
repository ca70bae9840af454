import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { issueCertificate } from '../../../src/injector/certificate/certificate-authority.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { answer, answerToken, ScriptedTokenEndpoint } from '../../support/scripted-token-endpoint.ts';
import { ShiftedClock } from '../../support/shifted-clock.ts';
import { mountClient, RunningSidecar, startApi } from './running-sidecar.ts';

const MAX_FAREWELL_MS = 300_000;

const OPTIONAL_WAIT_MS = 30_000;

/** Until it is so; the test's own bound is the only one. */
const eventually = (read: () => unknown) => expect.poll(read, { timeout: 60_000, interval: 20 });

const REFUSAL = answer(401, JSON.stringify({ error: 'invalid_client' }));

/** A provider, an API and a sidecar between them, with what it takes to write another configuration. */
async function startShop(clock?: ShiftedClock) {
  const provider = await ScriptedTokenEndpoint.start(answerToken({ access_token: 'first' }));
  const dir = await mountClient();
  const upstream = await startApi();
  const credential = { name: 'default', tokenUrl: provider.url, dir };
  const route = { name: 'api', match: { pathPrefix: '/api' }, upstream, credential: 'default' };
  const config = { credentials: [credential], routes: [route] };
  const running = await RunningSidecar.start(config, clock);
  await running.sidecar.ready;
  return { provider, dir, upstream, credential, route, config, running };
}

/** Another provider, and a credential of it. */
async function startSecond(script = answerToken({ access_token: 'second' })) {
  const provider = await ScriptedTokenEndpoint.start(script);
  const credential = { name: 'second', tokenUrl: provider.url, dir: await mountClient() };
  return { provider, credential };
}

describe('a changed file', () => {
  it('takes effect: routes come and go, and the token of a credential that stays is not asked for again', async () => {
    const { provider, route, config, running } = await startShop();
    expect(await (await running.get('/api')).text()).toBe('Bearer first');
    const [held] = running.sidecar.tokens;

    const other = { ...route, name: 'other', match: { pathPrefix: '/other' } };
    await running.change({ ...config, routes: [other] });

    expect((await running.get('/api')).status).toBe(404);
    expect(await (await running.get('/other')).text()).toBe('Bearer first');
    await eventually(() => running.text('/metrics')).not.toContain('route="api"');
    expect(provider.received).toHaveLength(1);
    expect(running.sidecar.tokens).toEqual([held]);
    expect(await running.status()).toMatchObject({ generation: 2, state: 'current' });
    expect(await running.metric('config_generation')).toBe(2);
    expect(await running.metric('config_last_reload_successful')).toBe(1);
    expect(await running.metric('config_reload_total{result="success"}')).toBe(1);
    const { routes } = (await (await running.admin('/api/status')).json()) as { routes: { name: string }[] };
    expect(routes.map(({ name }) => name)).toEqual(['other']);
  });

  it('switches to a new credential once its token is there', async () => {
    const { route, config, running } = await startShop();
    const { provider, credential } = await startSecond();
    const granted = Promise.withResolvers<void>();
    const give = provider.script;
    provider.script = (response, request) => void granted.promise.then(() => give(response, request));

    await running.write({
      credentials: [...config.credentials, credential],
      routes: [{ ...route, credential: 'second' }],
    });
    await provider.requests(1);
    expect(await running.status()).toMatchObject({
      generation: 1,
      state: 'waiting',
      overdue: false,
      missing: [expect.stringMatching(/^credential second has waited for its first token since /)],
    });
    expect(await (await running.get('/api')).text()).toBe('Bearer first');
    // What is not in use yet keeps no pod from its work.
    expect((await running.admin('/readyz')).status).toBe(200);
    expect(await running.metric('token_ready{credential="second"}')).toBeUndefined();
    granted.resolve();
    await running.logged('"generation":2,');

    expect(await (await running.get('/api')).text()).toBe('Bearer second');
    expect(await running.metric('token_ready{credential="second"}')).toBe(1);
  });

  it('that changes a credential keeps its token in use until there is another', async () => {
    const { provider, credential, config, running } = await startShop();
    const [before] = running.sidecar.tokens;
    provider.script = answerToken({ access_token: 'with-scope' });

    await running.change({ ...config, credentials: [{ ...credential, scope: 'read' }] });

    expect(await (await running.get('/api')).text()).toBe('Bearer with-scope');
    expect(provider.received.map(({ form }) => form.get('scope'))).toEqual([null, 'read']);
    expect(running.sidecar.tokens).not.toContain(before);
    expect(await running.metric('token_ready{credential="default"}')).toBe(1);
  });

  it('ends a credential that is gone, once the requests that began with it have ended', async () => {
    const arrived = Promise.withResolvers<() => void>();
    const slow = await startApi((request, response) =>
      arrived.resolve(() => response.end(request.headers.authorization)),
    );
    const { config, route, upstream, running } = await startShop();
    const { credential } = await startSecond();
    const routes = [
      { ...route, name: 'slow', match: { pathPrefix: '/slow' }, upstream: slow, credential: 'second' },
    ];
    await running.change({
      credentials: [...config.credentials, credential],
      routes: [...routes, { ...route, upstream }],
    });
    const begun = running.get('/slow');
    const finish = await arrived.promise;

    await running.change(config);
    expect((await running.get('/slow')).status).toBe(404);
    expect(
      await running.metric('token_refresh_total{credential="second",result="success",reason="startup"}'),
    ).toBe(1);
    finish();

    expect(await (await begun).text()).toBe('Bearer second');
    await eventually(() =>
      running.metric('token_refresh_total{credential="second",result="success",reason="startup"}'),
    ).toBeUndefined();
    expect(await running.metric('token_ready{credential="second"}')).toBeUndefined();
    expect(await running.metric('token_ready{credential="default"}')).toBe(1);
  });

  it('ends one after five minutes that requests still hold, and counts those to their end', async () => {
    const arrived = Promise.withResolvers<() => void>();
    const slow = await startApi((_, response) => arrived.resolve(() => response.end('late')));
    const clock = new ShiftedClock();
    const { config, route, running } = await startShop(clock);
    const { credential } = await startSecond();
    const slowRoute = { ...route, name: 'slow', match: { pathPrefix: '/slow' }, upstream: slow };
    const patient = { ...slowRoute, credential: 'second', timeouts: { response: '1h', idle: '1h' } };
    await running.change({ credentials: [...config.credentials, credential], routes: [patient, route] });
    const begun = running.get('/slow');
    const finish = await arrived.promise;
    await running.change(config);

    const granted = 'token_refresh_total{credential="second",result="success",reason="startup"}';
    clock.advance(MAX_FAREWELL_MS - 10_000);
    expect(await running.metric(granted)).toBe(1);
    // The five minutes may have begun only after the clock was moved.
    await eventually(() => {
      clock.advance(10_000);
      return running.text('/metrics');
    }).not.toContain('credential="second"');
    expect(await running.metric('proxy_requests_in_flight{route="slow"}')).toBe(1);

    finish();
    expect(await (await begun).text()).toBe('late');
    await eventually(() => running.text('/metrics')).not.toContain('route="slow"');
    expect(await running.text('/metrics')).toContain('route="api"');
  });

  it('keeps the series of a name that comes back before what had it is let go', async () => {
    const arrived = Promise.withResolvers<() => void>();
    const slow = await startApi((_, response) => arrived.resolve(() => response.end('late')));
    const { config, route, upstream, running } = await startShop();
    const renamed = { ...route, name: 'renamed' };
    await running.change({ ...config, routes: [{ ...renamed, upstream: slow }] });
    const begun = running.get('/api');
    const finish = await arrived.promise;
    await running.change(config);
    await running.change({ ...config, routes: [{ ...renamed, upstream }] });
    finish();
    await (await begun).text();
    await eventually(() => running.text('/metrics')).not.toContain('route="api"');
    await (await running.get('/api')).text();
    await eventually(() =>
      running.metric('proxy_requests_total{route="renamed",method="GET",code="200"}'),
    ).toBe(2);
  });

  it('does not end one that a generation in between has requests with', async () => {
    const held: (() => void)[] = [];
    const slow = await startApi((request, response) => {
      held.push(() => response.end(request.headers.authorization));
    });
    const { config, route, running } = await startShop();
    const { credential } = await startSecond();
    const credentials = [...config.credentials, credential];
    const by = (prefix: string) => ({
      credentials,
      routes: [
        { ...route, name: 'slow', match: { pathPrefix: prefix }, upstream: slow, credential: 'second' },
        route,
      ],
    });
    await running.change(by('/one'));
    const first = running.get('/one');
    await eventually(async () => held.length).toBe(1);
    await running.change(by('/two'));
    const second = running.get('/two');
    await eventually(async () => held.length).toBe(2);
    await running.change(config);

    held[0]?.();
    await (await first).text();
    // The credential goes with the one that is left.
    for (let look = 0; look < 5; look++) {
      expect(
        await running.metric('token_refresh_total{credential="second",result="success",reason="startup"}'),
      ).toBe(1);
    }
    held[1]?.();
    expect(await (await second).text()).toBe('Bearer second');
    await eventually(() =>
      running.metric('token_refresh_total{credential="second",result="success",reason="startup"}'),
    ).toBeUndefined();
  });

  it('sets the log level of all that logs', async () => {
    const { config, running } = await startShop();
    await running.write({ ...config, logLevel: 'warn' });
    await eventually(async () => (await running.status()).generation).toBe(2);
    const lines = running.lines.length;
    running.sidecar.reload();
    await eventually(() => running.metric('config_reload_total{result="unchanged"}')).toBe(1);
    expect(running.lines).toHaveLength(lines);
  });
});

describe('what cannot be used changes nothing', () => {
  it('an invalid file, which is said with its place wherever somebody looks', async () => {
    const { config, running } = await startShop();
    const secret = 'hunter2-is-the-secret';
    await running.write(`routes:\n  - name: api\n    upstraem: https://x:${secret}@api.test\n`);

    const { report, generation, level } = await running.logged('the configuration file is not valid');
    expect([generation, level]).toEqual([1, 'error']);
    expect(report).toMatch(/error\[unknown_key\].*token-sidecar\.yaml:3:5.*upstraem.*\^{8}/s);
    expect(await running.status()).toMatchObject({
      generation: 1,
      state: 'refused',
      reason: 'invalid',
      errors: report,
    });
    expect(await running.metric('config_reload_total{result="invalid"}')).toBe(1);
    expect(await running.metric('config_last_reload_successful')).toBe(0);
    expect(running.lines.join('')).not.toContain(secret);
    expect(JSON.stringify(await running.status())).not.toContain(secret);
    expect((await running.get('/api')).status).toBe(200);

    await running.write(config);
    await running.logged('the configuration file says what is in use');
    expect(await running.status()).toMatchObject({ generation: 1, state: 'current' });
    expect(await running.metric('config_last_reload_successful')).toBe(1);
  });

  it('one that moves a listener, and the key is named', async () => {
    const { config, route, running } = await startShop();
    await running.write({ ...config, listen: '127.0.0.1:1', routes: [{ ...route, name: 'other' }] });

    const { report } = await running.logged('takes effect with a restart alone');
    expect(report).toBe('listen: from 127.0.0.1:0 to 127.0.0.1:1');
    expect(await running.status()).toMatchObject({
      state: 'refused',
      reason: 'restart_required',
      errors: report,
    });
    expect(await running.metric('config_reload_total{result="restart_required"}')).toBe(1);
    expect((await running.get('/api')).status).toBe(200);
  });

  it('one whose certificate is no certificate', async () => {
    const { config, route, dir, running } = await startShop();
    const tls = { caFile: `${dir}/client_id` };
    await running.write({ ...config, routes: [{ ...route, upstream: 'https://127.0.0.1:1', tls }] });

    const { report } = await running.logged('the configuration file is not valid');
    expect(report).toContain('error[invalid_pem]');
    expect((await running.get('/api')).status).toBe(200);
  });
});

it('what was opened of a configuration that cannot be used leaves no series', async () => {
  const { config, route, running } = await startShop();
  const issue = () => issueCertificate({ hosts: ['a.test'], nowMs: Date.now(), lifetimeMs: 60_000 });
  const [one, other] = await Promise.all([issue(), issue()]);
  const { directory } = await mountSecret({ 'tls.crt': one.cert, 'tls.key': other.key });
  const tls = { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') };
  const { credential } = await startSecond();
  await running.write({
    credentials: [...config.credentials, credential],
    routes: [
      { ...route, name: 'opened', credential: 'second' },
      {
        ...route,
        name: 'unusable',
        match: { pathPrefix: '/unusable' },
        upstream: 'https://127.0.0.1:1',
        tls,
      },
    ],
  });

  await running.logged('the configuration cannot be used');
  await eventually(() => running.text('/metrics')).not.toMatch(/route="opened"|credential="second"/);
  expect(await (await running.get('/api')).text()).toBe('Bearer first');
});

it('what was opened of a configuration that cannot be used does not show in the series of a name in use', async () => {
  const { config, route, running } = await startShop();
  const issue = (lifetimeMs: number) =>
    issueCertificate({ hosts: ['a.test'], nowMs: Date.now(), lifetimeMs });
  const [one, other] = await Promise.all([issue(86_400_000), issue(60_000)]);
  const { directory } = await mountSecret({
    'one.crt': one.ca,
    'other.crt': other.ca,
    'tls.crt': one.cert,
    'tls.key': other.key,
  });
  const upstream = 'https://127.0.0.1:1';
  const path = (name: string) => join(directory, name);
  const secured = { ...route, name: 'secured', match: { pathPrefix: '/secured' }, upstream };
  const series = 'tls_certificate_expiry_timestamp_seconds{route="secured",file="caFile"}';
  await running.change({ ...config, routes: [{ ...secured, tls: { caFile: path('one.crt') } }] });
  const before = await running.metric(series);

  const tls = { certFile: path('tls.crt'), keyFile: path('tls.key') };
  await running.write({
    ...config,
    routes: [
      { ...secured, tls: { caFile: path('other.crt') } },
      { ...secured, name: 'unusable', match: { pathPrefix: '/unusable' }, tls },
    ],
  });
  await running.logged('the configuration cannot be used');
  expect(before).toBeDefined();
  expect(await running.metric(series)).toBe(before);

  await running.change({ ...config, routes: [{ ...secured, tls: { caFile: path('other.crt') } }] });
  expect(await running.metric(series)).toBeLessThan(before as number);
});

describe('while the provider of a new credential gives nothing', () => {
  it('the series of a name have what is in use, not what waits to take its place, or has waited in vain', async () => {
    const issue = async (lifetimeMs: number): Promise<string> => {
      const { ca } = await issueCertificate({ hosts: ['a.test'], nowMs: Date.now(), lifetimeMs });
      const { directory } = await mountSecret({ 'ca.crt': ca });
      return join(directory, 'ca.crt');
    };
    const [caFile, other] = await Promise.all([issue(86_400_000), issue(60_000)]);
    const { provider, credential: client } = await startSecond();
    const upstream = await startApi();
    const credential = { ...client, tls: { caFile } };
    const route = { name: 'api', match: { pathPrefix: '/api' }, upstream, credential: 'second' };
    const config = { credentials: [credential], routes: [route] };
    const running = await RunningSidecar.start(config);
    await running.sidecar.ready;
    const series = [
      'tls_certificate_expiry_timestamp_seconds{credential="second",file="caFile"}',
      'credentials_loaded_timestamp_seconds{credential="second"}',
    ];
    const read = () => Promise.all(series.map((one) => running.metric(one)));
    const before = await read();

    provider.script = REFUSAL;
    await running.write({ ...config, credentials: [{ ...credential, tls: { caFile: other } }] });
    await eventually(async () => (await running.status()).missing?.join()).toMatch(/rejected the client/);
    expect(await read()).toEqual(before);
    await running.write(config);
    await running.logged('the configuration file says what is in use');

    expect(await read()).toEqual(before);
    provider.script = answerToken({ access_token: 'third' });
    await running.change({ ...config, credentials: [{ ...credential, tls: { caFile: other } }] });
    expect((await read())[0]).toBeLessThan(before[0] as number);
  });

  it('what was in use stays, and what is waited for is said; a file that does without takes its place', async () => {
    const { config, route, running } = await startShop();
    const { provider, credential } = await startSecond(REFUSAL);
    await running.write({
      credentials: [...config.credentials, credential],
      routes: [{ ...route, credential: 'second' }],
    });
    await provider.requests(1);
    await eventually(async () => (await running.status()).missing).toEqual([
      expect.stringMatching(/^credential second has had no token since .*rejected the client/),
    ]);
    expect(await (await running.get('/api')).text()).toBe('Bearer first');
    expect((await running.admin('/readyz')).status).toBe(200);

    await running.change({ ...config, routes: [{ ...route, name: 'renamed' }] });
    expect(running.sidecar.tokens).toHaveLength(1);
    await eventually(() => running.text('/metrics')).not.toContain('credential="second"');
    expect(
      await running.metric('proxy_requests_total{route="renamed",method="GET",code="200"}'),
    ).toBeUndefined();
    expect(await (await running.get('/api')).text()).toBe('Bearer first');
  });

  it('the token comes in the end, and the change takes effect by itself', async () => {
    const { config, route, running } = await startShop();
    const { provider, credential } = await startSecond(answer(503, 'down'));
    await running.write({
      credentials: [...config.credentials, credential],
      routes: [{ ...route, credential: 'second' }],
    });
    await provider.requests(1);
    provider.script = answerToken({ access_token: 'at-last' });
    await running.logged('"generation":2,');
    expect(await (await running.get('/api')).text()).toBe('Bearer at-last');
  });
});

it('a token that the pod can do without is waited for, and its absence is no failure', async () => {
  const clock = new ShiftedClock();
  const { config, running } = await startShop(clock);
  const { provider, credential } = await startSecond(REFUSAL);
  const optional = { ...credential, required: false };
  await running.write({ ...config, credentials: [...config.credentials, optional] });
  await provider.requests(1);
  await eventually(async () => (await running.status()).state).toBe('waiting');
  expect(await running.status()).toMatchObject({
    overdue: false,
    missing: [expect.stringMatching(/^credential second has .* \(waited for 30 s at most\)$/)],
  });
  clock.advance(OPTIONAL_WAIT_MS);
  await running.logged('"generation":2,');
  expect(await running.status()).toMatchObject({ generation: 2, state: 'current' });
  expect(await running.metric('config_reload_total{result="token_unavailable"}')).toBeUndefined();
  expect(running.lines.join('')).not.toContain('waits for tokens');
});

it('no request fails while the file changes all the time', async () => {
  const { config, route, running } = await startShop();
  const { credential } = await startSecond();
  const credentials = [...config.credentials, credential];
  let over = false;
  let served = 0;
  const clients = Array.from({ length: 4 }, async () => {
    while (!over) {
      const got = await running.get('/api');
      expect([got.status, await got.text()]).toEqual([200, expect.stringMatching(/^Bearer (first|second)$/)]);
      served++;
    }
  });
  for (let count = 0; count < 4; count++) {
    await running.change({
      credentials,
      routes: [{ ...route, credential: count % 2 === 0 ? 'second' : 'default', name: `api-${count}` }],
    });
    const target = served + 13;
    await eventually(() => served).toBeGreaterThanOrEqual(target);
  }
  over = true;
  await Promise.all(clients);
  expect(served).toBeGreaterThan(50);
});
