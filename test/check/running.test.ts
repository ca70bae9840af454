import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { exitStatusOfFindings } from '../../src/check/report.ts';
import { checkRunning } from '../../src/check/running.ts';
import { VERSION } from '../../src/platform/version.ts';
import { refusingPort } from '../support/free-port.ts';
import { examination, lines } from './examined.ts';

const AT = '2030-01-01T00:00:00.000Z';
const HELD = { name: 'shop', required: true, ready: true, expiresInSeconds: 200, consecutiveFailures: 0 };
const STATUS = {
  version: VERSION,
  at: '2030-01-01T00:00:30.000Z',
  uptimeSeconds: 12_000,
  draining: false,
  verdict: { level: 'ok', sentence: 'All is well.', problems: [] },
  credentials: [HELD],
  routes: [{ name: 'a', requests: { total: 1000, inFlight: 2, errors: 300 } }],
};

/** As a sidecar says it of a credential. */
const ofShop = (level: 'warning' | 'failing', more: object = {}) => ({
  level,
  about: { kind: 'credential', name: 'shop' },
  what: 'credential shop has had no token',
  since: AT,
  reason: 'the provider rejects the client',
  advice: 'compare the Secret',
  next: 'the sidecar asks again',
  nextAt: '2030-01-01T00:01:00.000Z',
  ...more,
});

const saying = (...problems: readonly object[]) => ({ ...STATUS, verdict: { problems } });

async function examined(body: unknown, status = 200) {
  const server = createServer((_request, response) => {
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const findings = await checkRunning({ host: '127.0.0.1', port }, examination());
  return { findings, text: lines(findings), status: exitStatusOfFindings(findings) };
}

it('tells of a sidecar that is well', async () => {
  const { text, status } = await examined(STATUS);
  expect(text).toEqual([
    expect.stringMatching(/^ok at 127\.0\.0\.1:\d+: sidecar: version \S+, up for 3 h 20 min$/),
    'ok credential shop: state: a token is held for 3 min more',
    'ok route a: traffic: 1000 request(s), 2 in flight, 300 answered with an error of the proxy',
  ]);
  expect(status).toBe(0);
});

it('shows what is masked as the sidecar does, and nothing else that no terminal should get', async () => {
  const { text } = await examined(saying(ofShop('warning', { reason: 'the secret is […]\u001b[2J\u0007' })));
  expect(text.join()).toContain('the secret is […]');
  expect(text.join()).not.toMatch(/\p{Cc}/u);
});

it('tells of a credential whose tokens are exchanged for those of requests', async () => {
  const { expiresInSeconds: _, ...credential } = { ...HELD, tokens: 'exchanged' };
  const { text } = await examined({ ...STATUS, credentials: [credential] });
  expect(text[1]).toBe('ok credential shop: state: the token of each request is exchanged');
});

describe('a sidecar that is not well says so itself', () => {
  it.each([
    ['its credentials are rejected', 'credentials_rejected', 77],
    ['its provider is away', 'provider_unavailable', 69],
    ['its Secret is missing', 'configuration', 78],
  ])('of a credential: %s', async (_, code, exit) => {
    const { text, status } = await examined(
      saying(ofShop('failing', { code, runbook: 'TokenSidecarTokenUnavailable' })),
    );
    expect(text[1]).toBe(
      'failure credential shop: state: credential shop has had no token since 2030-01-01 00:00:00 UTC (30 s): the provider rejects the client; the sidecar asks again at 2030-01-01 00:01:00 UTC (in 30 s) → compare the Secret; token-sidecar explain TokenSidecarTokenUnavailable',
    );
    expect(status).toBe(exit);
  });

  it('of a credential for which no advice is known', async () => {
    const { text } = await examined(saying(ofShop('warning', { advice: undefined })));
    expect(text[1]).toMatch(/→ run check without --status: it tries each step$/);
  });

  it('of a credential that the pod does without, or whose token is held', async () => {
    const { text, status } = await examined(saying(ofShop('warning')));
    expect(text[1]).toMatch(/^warning credential shop: state: credential shop has had no token since/);
    expect(text).toHaveLength(3);
    expect(status).toBe(0);
  });

  it('of routes, and of hosts that are no route', async () => {
    const failed = { what: 'route a has failed', advice: 'explain' };
    const { text, status } = await examined(
      saying(
        { level: 'failing', about: { kind: 'route', name: 'a' }, ...failed },
        { level: 'warning', about: { kind: 'route', name: 'forward:api.example.com' }, ...failed },
      ),
    );
    expect(text.slice(2)).toEqual([
      expect.stringMatching(/^failure route a: traffic: route a has failed → explain/),
      expect.stringMatching(/^warning route forward:api\.example\.com: traffic: /),
    ]);
    expect(status).toBe(69);
  });

  it('of itself, and so does one that knows more', async () => {
    const drains = { level: 'warning', what: 'the sidecar drains', next: 'it ends' };
    const newer = { ...drains, what: 'the moon is full', about: { kind: 'moon', name: 'full' } };
    const { text } = await examined({ ...saying(drains, newer), draining: true });
    expect(text.slice(1, 3)).toEqual([
      expect.stringMatching(/^warning at \S+: sidecar: the sidecar drains; it ends → it is being ended/),
      expect.stringMatching(/^warning at \S+: sidecar: the moon is full; it ends → /),
    ]);
  });

  it('and whoever asks says that it is of another version', async () => {
    expect((await examined({ ...STATUS, version: '0.0.9' })).text[0]).toMatch(/^warning .*this program is/);
  });
});

describe('the configuration in use', () => {
  const file = '/etc/token-sidecar.yaml';
  const told = async (standing: object, ...problems: readonly object[]) => {
    const configuration = { file, generation: 2, since: AT, ...standing };
    const found = await examined({ ...saying(...problems), configuration });
    return { text: found.text[1], status: found.status };
  };
  const problem = (reason: string) => ({
    level: 'warning',
    about: { kind: 'configuration', name: file },
    what: 'the changed configuration file has been refused',
    since: AT,
    reason,
    next: 'generation 2 stays in use until the file changes again',
    runbook: 'TokenSidecarConfigReloadFailing',
  });

  it('is that of the file, or not yet', async () => {
    const of = `ok at ADDRESS: configuration in use: generation 2 of ${file}: `;
    const plain = async (standing: object) => (await told(standing)).text?.replace(/at \S+:/, 'at ADDRESS:');
    expect(await plain({ state: 'current' })).toBe(`${of}it is what the file says`);
    expect(await plain({ state: 'waiting' })).toBe(`${of}the next one waits for its tokens`);
  });

  it('is an earlier one, because the file was refused', async () => {
    const errors = 'error[invalid_value]: listen: "x": expected host:port\n --> token-sidecar.yaml:1:9';
    const standing = { state: 'refused', reason: 'invalid', errors };
    const { text, status } = await told(standing, problem(`${file} is not valid.`));
    expect(text).toMatch(
      /^warning at \S+: configuration in use: the changed .* refused since .*: error\[invalid_value\]: listen: "x": expected host:port; generation 2 stays in use .* → mend the file: token-sidecar check --config \/etc\/token-sidecar\.yaml --offline .*; token-sidecar explain TokenSidecarConfigReloadFailing$/,
    );
    expect(status).toBe(0);
  });

  it('is an earlier one for another reason', async () => {
    const restart = { state: 'refused', reason: 'restart_required', errors: 'listen' };
    expect((await told(restart, problem('x'))).text).toContain('→ restart the pod');
    expect((await told({ state: 'waiting' }, problem('x'))).text).toContain('it tries the credentials');
  });
});

describe('no sidecar', () => {
  it.each([
    ['another program', '<html>', 200, 'what answers there is no sidecar'],
    ['another status', { version: 1 }, 200, 'what answers there is no sidecar'],
    ['a refusal', '', 403, '/api/status answered 403'],
    ['endless words', 'x'.repeat(5 * 1024 * 1024), 200, 'it answers more than 4194304 bytes'],
  ])('%s', async (_, body, code, expected) => {
    const { text, status } = await examined(body, code);
    expect(text).toEqual([expect.stringContaining(expected)]);
    expect(status).toBe(69);
  });

  it('nobody', async () => {
    const findings = await checkRunning({ host: '127.0.0.1', port: await refusingPort() }, examination());
    expect(lines(findings)).toEqual([expect.stringMatching(/ECONNREFUSED → run it in the container/)]);
  });
});
