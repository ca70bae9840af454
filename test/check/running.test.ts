import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { exitStatusOf } from '../../src/check/report.ts';
import { examineRunning } from '../../src/check/running.ts';
import { VERSION } from '../../src/version.ts';
import { refusingPort } from '../support/free-port.ts';
import { examination, lines } from './examined.ts';

const HELD = { name: 'shop', required: true, ready: true, expiresInSeconds: 200, consecutiveFailures: 0 };
const STATUS = {
  version: VERSION,
  uptimeSeconds: 12_000,
  draining: false,
  credentials: [HELD],
  routes: [{ name: 'a', requests: { total: 1000, inFlight: 2, errors: 3 } }],
};
const FAILURE = { at: '2026-11-22T00:00:00Z', result: 'rejected', detail: 'status 401 invalid_client' };

async function examined(body: unknown, status = 200) {
  const server = createServer((_request, response) => {
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const findings = await examineRunning({ host: '127.0.0.1', port }, examination());
  return { findings, text: lines(findings), status: exitStatusOf(findings) };
}

it('tells of a sidecar that is well', async () => {
  const { text, status } = await examined(STATUS);
  expect(text).toEqual([
    expect.stringMatching(/^ok at 127\.0\.0\.1:\d+: sidecar: version \S+, up for 3 h 20 min$/),
    'ok credential shop: state: a token is held for 3 min 20 s more',
    'ok route a: traffic: 1000 request(s), 2 in flight, 3 answered with an error of the proxy',
  ]);
  expect(status).toBe(0);
});

describe('a sidecar that is not well', () => {
  const withCredential = (fields: object) => ({ ...STATUS, credentials: [{ ...HELD, ...fields }] });

  it.each([
    [
      'its credentials are rejected',
      { ready: false, lastFailure: FAILURE },
      /^failure .*no token: rejected: status 401/,
      77,
    ],
    [
      'its provider is away',
      { ready: false, lastFailure: { ...FAILURE, result: 'unavailable' } },
      /^failure/,
      69,
    ],
    [
      'its Secret is missing',
      { ready: false, mountedCredentials: { detail: 'x does not exist' } },
      /no token: x does not/,
      78,
    ],
    ['the pod does without', { ready: false, required: false, lastFailure: FAILURE }, /^warning/, 0],
    [
      'renewals fail',
      { consecutiveFailures: 3, lastFailure: FAILURE },
      /^warning .*3 renewal\(s\) in a row/,
      0,
    ],
    [
      'the next Secret cannot be used',
      { mountedCredentials: { detail: 'x is empty' } },
      /^warning .*x is empty/,
      0,
    ],
    [
      'the token of each request is exchanged',
      { tokens: 'exchanged', expiresInSeconds: undefined, consecutiveFailures: 2, lastFailure: FAILURE },
      /^warning .*the token of each request is exchanged; 2 exchange\(s\) in a row/,
      0,
    ],
  ])('%s', async (_, fields, expected, exit) => {
    const { text, status } = await examined(withCredential(fields));
    expect(text[1]).toMatch(expected);
    expect(status).toBe(exit);
  });

  it('drains, is of another version, answers many errors', async () => {
    expect((await examined({ ...STATUS, draining: true })).text[0]).toMatch(/^warning .*draining/);
    expect((await examined({ ...STATUS, version: '0.0.9' })).text[0]).toMatch(/^warning .*this program is/);
    const routes = [{ name: 'a', requests: { total: 100, inFlight: 0, errors: 2 } }];
    expect((await examined({ ...STATUS, routes })).text[2]).toMatch(
      /^warning .*token_sidecar_proxy_errors_total/,
    );
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
    const findings = await examineRunning({ host: '127.0.0.1', port: await refusingPort() }, examination());
    expect(lines(findings)).toEqual([expect.stringMatching(/ECONNREFUSED → run it in the container/)]);
  });
});
