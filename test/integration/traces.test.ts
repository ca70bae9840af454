import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand } from '../support/run-command.ts';
import { runHere } from '../support/run-here.ts';
import { answerToken, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const TOKEN = 'token-that-nobody-may-see';

interface Export {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly text: string;
}

async function startServer(answer: (body: string, request: { url?: string }) => string): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { url = '' } = request;
    response.setHeader('content-type', 'application/json');
    response.end(answer(Buffer.concat(chunks).toString('utf8'), { ...request.headers, url }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What takes OTLP (OpenTelemetry Protocol 1.0, OTLP/HTTP). */
async function startCollector() {
  const exports: Export[] = [];
  const url = await startServer((text, request) => {
    const { url: path = '', authorization } = request as { url?: string; authorization?: string };
    exports.push({ path, authorization, text });
    return '{}';
  });
  return { url, exports };
}

async function launch(tokenUrl: string, env: Readonly<Record<string, string>>): Promise<RunningCommand> {
  const secret = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
  return new RunningCommand(['proxy'], {
    TOKEN_SIDECAR_TOKEN_URL: tokenUrl,
    TOKEN_SIDECAR_UPSTREAM: await startServer(() => 'hello'),
    TOKEN_SIDECAR_CREDENTIALS_DIR: secret.directory,
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_TERMINATION_LOG: '/nonexistent',
    ...env,
  });
}

async function startTraced(env: Readonly<Record<string, string>>) {
  const provider = await ScriptedTokenEndpoint.start(answerToken({ access_token: TOKEN }));
  const sidecar = await launch(provider.url, env);
  const [, proxy] = await sidecar.output(/"proxy":"([^"]+)"/);
  await sidecar.output(/"msg":"ready"/);
  return { sidecar, proxy: `http://${proxy}` };
}

describe('where the standard variables name a collector', () => {
  it('spans go there, at the latest when the sidecar ends, with nothing secret in them', async () => {
    const collector = await startCollector();
    const { sidecar, proxy } = await startTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=for-the-collector',
      OTEL_SERVICE_NAME: 'shop',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    });

    const answer = await fetch(`${proxy}/orders?key=secret-query`, {
      headers: { traceparent: TRACEPARENT, connection: 'close' },
    });
    expect(await answer.text()).toBe('hello');
    sidecar.process.kill('SIGTERM');
    expect(await sidecar.exited).toMatchObject({ code: 0 });

    expect(collector.exports.map(({ path }) => path)).toEqual(['/v1/traces']);
    expect(collector.exports[0]?.authorization).toBe('for-the-collector');
    const text = collector.exports[0]?.text ?? '';
    const [exported] = (JSON.parse(text) as { resourceSpans: readonly Record<string, never>[] })
      .resourceSpans;
    expect(exported).toMatchObject({
      resource: {
        attributes: expect.arrayContaining([
          { key: 'service.name', value: { stringValue: 'shop' } },
          { key: 'deployment.environment.name', value: { stringValue: 'test' } },
        ]),
      },
      scopeSpans: [
        {
          scope: { name: 'token-sidecar' },
          spans: [{ name: 'grant' }, { traceId: TRACE }, { traceId: TRACE, name: 'GET /' }],
        },
      ],
    });
    for (const secret of [TOKEN, 'secret-query', 'S3CRET']) {
      expect(text).not.toContain(secret);
      expect(sidecar.stdout).not.toContain(secret);
    }
  });

  it('the span of a grant that the end gives up goes there, too', async () => {
    const collector = await startCollector();
    const provider = createServer(() => undefined);
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      provider.closeAllConnections();
      provider.close();
    });
    const asked = once(provider, 'request');
    const sidecar = await launch(`http://127.0.0.1:${(provider.address() as AddressInfo).port}`, {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    });
    await Promise.all([asked, sidecar.output(/"msg":"listening"/)]);
    sidecar.process.kill('SIGTERM');
    await sidecar.exited;

    expect(collector.exports.map(({ text }) => text).join()).toContain('given_up');
  });

  it('which is away, requests pass, the log says so, and the end comes in time', async () => {
    const { sidecar, proxy } = await startTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    });

    expect((await fetch(`${proxy}/`, { headers: { connection: 'close' } })).status).toBe(200);

    await sidecar.output(/spans were not exported/);
    sidecar.process.kill('SIGTERM');
    expect(await sidecar.exited).toMatchObject({ code: 0 });
  });
});

/** A sidecar whose collector takes connections and says nothing. */
async function startUnheard(env: Readonly<Record<string, string>> = {}) {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    silent.closeAllConnections();
    silent.close();
  });
  return startTraced({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
    OTEL_BSP_SCHEDULE_DELAY: '60000',
    OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
    ...env,
  });
}

/** Ends it by a signal. @returns its exit status, and how long it says that its end took. */
async function terminated(sidecar: RunningCommand) {
  sidecar.process.kill('SIGTERM');
  const { code } = await sidecar.exited;
  const [began = 0, ended = 0] = ['draining', 'stopped'].map((msg) => {
    const line = sidecar.stdout.split('\n').find((one) => one.includes(`"msg":"${msg}"`)) ?? '{}';
    return Date.parse((JSON.parse(line) as { time: string }).time);
  });
  return { code, tookMs: ended - began };
}

it('a collector that takes connections and says nothing holds the end up for two seconds', async () => {
  const { sidecar, proxy } = await startUnheard();
  expect((await fetch(`${proxy}/`, { headers: { connection: 'close' } })).status).toBe(200);

  const { code, tookMs } = await terminated(sidecar);

  expect(code).toBe(0);
  expect(tookMs).toBeGreaterThan(1_900);
  expect(tookMs).toBeLessThan(5_000);
}, 20_000);

it('and not beyond the time of a drain that requests take whole', async () => {
  const never = createServer(() => undefined);
  await new Promise<void>((resolve) => never.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    never.closeAllConnections();
    never.close();
  });
  const arrived = once(never, 'request');
  const { directory } = await mountSecret({ 'shutdown.yaml': 'shutdown: { drainTimeout: 3s }' });
  const { sidecar, proxy } = await startUnheard({
    TOKEN_SIDECAR_UPSTREAM: `http://127.0.0.1:${(never.address() as AddressInfo).port}`,
    TOKEN_SIDECAR_CONFIG: join(directory, 'shutdown.yaml'),
  });
  const cut = fetch(`${proxy}/`).catch((error: unknown) => error);
  await arrived;

  const { code, tookMs } = await terminated(sidecar);

  expect(await cut).toBeInstanceOf(TypeError);
  expect(code).toBe(0);
  expect(tookMs).toBeGreaterThan(2_900);
  expect(tookMs).toBeLessThan(4_700);
}, 20_000);

it('of variables that cannot be followed each is named once, and the sidecar starts', async () => {
  const collector = await startCollector();
  const { sidecar } = await startTraced({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_TRACES_SAMPLER: 'sometimes',
  });
  const warnings = sidecar.stdout.split('\n').filter((line) => line.includes('is ignored'));
  expect(warnings.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: 'warn', variable: 'OTEL_EXPORTER_OTLP_PROTOCOL', value: '"grpc"' },
    { level: 'warn', variable: 'OTEL_TRACES_SAMPLER', value: '"sometimes"' },
  ]);
  sidecar.process.kill('SIGTERM');
  expect(await sidecar.exited).toMatchObject({ code: 0 });
});

it.each(['proxy', 'check'])(
  '%s ends with 78 where a collector would be trusted by no certificate',
  async (command) => {
    const { code, stderr } = await runHere([command], {
      TOKEN_SIDECAR_TOKEN_URL: 'https://sso.example.com/token',
      TOKEN_SIDECAR_UPSTREAM: 'https://api.example.com',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector:4318',
      OTEL_EXPORTER_OTLP_CERTIFICATE: '/nonexistent/ca.crt',
    });
    expect(code).toBe(78);
    expect(stderr).toContain(
      'OTEL_EXPORTER_OTLP_CERTIFICATE: "/nonexistent/ca.crt": expected a readable file',
    );
  },
);

it('check tells of variables that are ignored', async () => {
  const { stdout } = await runHere(['check', '--offline'], {
    TOKEN_SIDECAR_TOKEN_URL: 'https://sso.example.com/token',
    TOKEN_SIDECAR_UPSTREAM: 'https://api.example.com',
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_TRACES_SAMPLER: 'sometimes',
  });
  expect(stdout).toMatch(
    /^ok +traces +spans are exported by http\/protobuf, sampled by parentbased_always_on$/m,
  );
  expect(stdout).toMatch(
    /^WARN +traces +OTEL_TRACES_SAMPLER: "sometimes" is ignored\n +→ write one of always_on/m,
  );
});
