import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startAdminServer } from '../../../../src/admin/admin-server.ts';
import { html } from '../../../../src/sidecar/status/page/html.ts';
import { statusEndpoint, statusPageEndpoint } from '../../../../src/sidecar/status/page/status-page.ts';
import type { CredentialReport, RouteReport, StatusReport } from '../../../../src/sidecar/status/report.ts';
import { captureLog } from '../../../support/log-capture.ts';

const NOW = '2030-01-01T02:00:00.000Z';
const MINUTE_MS = 60_000;
const at = (minute: number) => new Date(Date.parse(NOW) - minute * MINUTE_MS).toISOString();

const credential = (name: string): CredentialReport => ({
  name,
  level: 'ok',
  state: 'ready',
  tokenUrl: 'https://sso.example.com/realms/dx/protocol/openid-connect/token',
  issuerUrl: undefined,
  required: true,
  tokens: 'held',
  openedAt: at(120),
  ready: true,
  requestedAt: at(1),
  expiresAt: at(-4),
  expiresInSeconds: 240,
  nextGrantAt: at(-3),
  nextGrantReason: 'scheduled',
  grantInFlight: false,
  consecutiveFailures: 0,
  failingSince: undefined,
  lastFailure: undefined,
  mountedCredentials: { state: 'loaded', detail: undefined, previousInUse: false, watchedBy: 'notification' },
  history: Array.from({ length: 20 }, (_, grant) => ({
    at: at(120 - grant * 5),
    reason: 'scheduled',
    result: 'success',
    durationMs: 12,
  })),
  timeline: Array.from({ length: 30 }, (_, grant) => ({
    at: at(119 - grant * 4),
    succeeded: 1,
    failed: grant % 2,
  })),
});

const route = (name: string): RouteReport => {
  const series = (factor: number) =>
    Array.from({ length: 60 }, (_, index) => Math.abs(Math.sin(index)) * factor);
  return {
    name,
    level: 'ok',
    state: 'ready',
    match: { pathPrefix: `/${name}/` },
    upstream: `https://${name}.example.com/v2`,
    protocol: 'auto',
    upstreamSpeaks: 'h2',
    credential: 'payments',
    inject: undefined,
    egressProxy: undefined,
    requests: { total: 12_345, inFlight: 3, errors: 12, grpc: { calls: 0, failures: 0 } },
    recent: {
      intervalSeconds: 10,
      requests: series(100).map(Math.round),
      errors: series(2).map(Math.round),
      p50Ms: series(40),
      p99Ms: series(400),
      statusClasses: { '2xx': 1234, '4xx': 5, '5xx': 6 },
      errorsByCode: { upstream_timeout: 6 },
      p50: 12,
      p99: 250,
      refusedTokens: 0,
    },
  };
};

function report(overrides: Partial<StatusReport> = {}): StatusReport {
  return {
    version: '0.1.0',
    revision: 'abc',
    node: 'v26',
    pod: { name: 'shop', namespace: 'payments', node: 'node-1' },
    at: NOW,
    startedAt: at(120),
    uptimeSeconds: 7200,
    draining: false,
    logLevel: 'info',
    memory: { residentBytes: 5e7, anonymousBytes: 2e7 },
    verdict: { level: 'ok', sentence: 'All is well.', problems: [] },
    credentials: [credential('payments')],
    routes: ['payments', 'mail', 'crm'].map(route),
    configuration: undefined,
    effectiveConfiguration: { logLevel: 'info' },
    ...overrides,
  };
}

async function serve(read: () => StatusReport) {
  const { log } = captureLog();
  const endpoints = { '/': statusPageEndpoint(read) };
  const server = await startAdminServer({ host: '127.0.0.1', port: 0 }, endpoints, log);
  onTestFinished(() => server.close());
  const answer = await fetch(`http://127.0.0.1:${server.address.port}/`);
  return { answer, text: await answer.text() };
}

describe('the status page', () => {
  it('is less than 30 KB, with a credential and three routes that are busy', async () => {
    const { text } = await serve(report);
    expect(Buffer.byteLength(text)).toBeLessThan(30_000);
  });

  it('runs and loads nothing but what is in it, by a policy that names both by their digests', async () => {
    const { answer, text } = await serve(report);
    const policy = answer.headers.get('content-security-policy') ?? '';
    const inside = (element: string) =>
      new RegExp(`<${element}[^>]*>([\\s\\S]*?)</${element}>`).exec(text)?.[1] ?? '';
    const digest = (part: string) => `sha256-${createHash('sha256').update(part).digest('base64')}`;
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      `script-src '${digest(inside('script'))}'`,
      `style-src '${digest(inside('style'))}'`,
      'img-src data:',
      "connect-src 'self'",
      "form-action 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ]);
    expect(text).not.toMatch(/<[^>]*\s(src|style|on[a-z]+)=/);
    expect(text.match(/<link [^>]*href="(?!data:)/g)).toBeNull();
    expect(inside('style')).not.toMatch(/url\(|@import/);
  });

  it('shows text as text, whatever it holds', async () => {
    const evil = `</script><img src=x onerror="alert(1)">'&`;
    const lastFailure = { at: at(1), result: 'rejected', detail: evil };
    const { text } = await serve(() =>
      report({
        credentials: [{ ...credential('payments'), lastFailure }],
        effectiveConfiguration: { host: evil },
      }),
    );
    expect(text).not.toContain('<img');
    expect(text).toContain('&lt;/script&gt;&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&#39;&amp;');
  });

  it('shows what stands in a refused file to callers on loopback alone', async () => {
    const errors = 'line 3: clientSecret hunter2';
    const configuration = {
      file: '/etc/token-sidecar.yaml',
      generation: 1,
      since: at(9),
      state: 'refused',
      refusedAt: at(1),
      reason: 'invalid',
      errors,
    } as const;
    const read = () => report({ configuration });
    const request = { accept: '', query: new URLSearchParams() };
    for (const endpoint of [statusPageEndpoint(read), statusEndpoint(read)]) {
      const [near, far] = await Promise.all(
        [true, false].map(async (isLocal) => endpoint.answer({ ...request, isLocal })),
      );
      expect(near?.body).toContain('hunter2');
      expect(far?.body).not.toContain('hunter2');
      expect(far?.body).toContain('callers on loopback');
    }
  });

  it.each([
    ['auto', 'h2', 'auto, h2 now'],
    ['auto', undefined, 'auto'],
    ['h2', 'h2', 'h2'],
  ] as const)(
    'says which version of HTTP a route has, set to %s and speaking %s',
    async (protocol, upstreamSpeaks, shown) => {
      const routes: RouteReport[] = [{ ...route('one'), protocol, upstreamSpeaks }];
      const { text } = await serve(() => report({ routes }));
      expect(text).toContain(`<dt>Protocol</dt><dd>${shown}</dd>`);
    },
  );

  it('puts what fails first', async () => {
    const routes: RouteReport[] = [route('fine'), { ...route('bad'), level: 'failing' }];
    const { text } = await serve(() => report({ routes }));
    expect(text.indexOf('id="route-bad"')).toBeGreaterThan(0);
    expect(text.indexOf('id="route-bad"')).toBeLessThan(text.indexOf('id="route-fine"'));
  });

  it('is bounded, however many routes there are: the worst are in it', async () => {
    const fine = Array.from({ length: 2000 }, (_, index) => route(`route-${index}`));
    const { text } = await serve(() => report({ routes: [...fine, { ...route('bad'), level: 'failing' }] }));
    expect(text.match(/id="route-/g)).toHaveLength(50);
    expect(text).toContain('id="route-bad"');
    expect(text).toContain('1951 more are left out here');
    expect(Buffer.byteLength(text)).toBeLessThan(250_000);
  });

  it('has every id once, where hosts are listed for more than one way', async () => {
    const { name: _, match: __, ...shown } = route('api.example.com');
    const hosts = (['forward proxy', 'capture', 'redirection'] as const).map((way) => ({
      ...shown,
      host: 'api.example.com',
      credential: 'payments',
      way,
      clear: false,
    }));
    const ways = hosts.map(({ way }) => ({ way, otherHosts: 'deny' as const }));
    const forwardProxy = { ways, hosts, refusals: 0, refusedHosts: [] };

    const { text } = await serve(() => report({ forwardProxy }));

    const ids = [...text.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    expect(ids).toEqual([...new Set(ids)]);
    expect(ids.filter((id) => /\s/.test(id ?? ''))).toEqual([]);
    expect(ids.filter((id) => id?.includes('api.example.com'))).toHaveLength(3);
  });

  it('has a script that closes no element that it is in, and imports nothing', () => {
    const script = readFileSync(
      join(import.meta.dirname, '../../../../src/sidecar/status/page/browser.ts'),
      'utf8',
    );
    expect(script).not.toMatch(/<\/?script|<!--/i);
    expect(script).not.toMatch(/^(import|export)\b/m);
  });
});

it('templates escape all but what is HTML already', () => {
  const list = [html`<i>${'<'}</i>`, undefined, 1, ['&', '"']];
  expect(html`<b title="${`'"`}">${list}</b>`.text).toBe(
    '<b title="&#39;&quot;"><i>&lt;</i>1&amp;&quot;</b>',
  );
});
