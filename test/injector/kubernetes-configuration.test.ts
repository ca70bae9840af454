/** How the API server is found, and what becomes of a configuration that leads to none. */

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { connectKubernetes } from '../../src/platform/kubernetes/client.ts';
import { freePort } from '../support/free-port.ts';
import { ManualClock } from '../support/manual-clock.ts';

const clock = new ManualClock();

async function kubeconfig(server: string | undefined, namespace?: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-kubeconfig-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, 'config');
  await writeFile(
    file,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters:
        server === undefined ? [] : [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace } }],
      users: [{ name: 'u', user: {} }],
      'current-context': 'x',
    }),
  );
  return file;
}

/** An API server that answers as it is told, and keeps what it was asked. */
async function serve(status: number, body: string, headers: Readonly<Record<string, string>> = {}) {
  const asked: {
    readonly line: string;
    readonly headers: NodeJS.Dict<string | string[]>;
    readonly body: string;
  }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    asked.push({
      line: `${request.method} ${request.url}`,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    });
    response.writeHead(status, headers).end(body);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close().closeAllConnections());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, url, client: connectKubernetes(await kubeconfig(`${url}//`), clock) };
}

it('a file that is not there is named by its flag, with the reason', () => {
  expect(() => connectKubernetes('/nowhere/config', clock)).toThrow(
    expect.objectContaining({
      code: 'configuration',
      message: expect.stringMatching(/^--kubeconfig: .*nowhere/),
      cause: expect.any(Error),
    }),
  );
});

it.each([undefined, 'no url', ''])('a file that leads to no server is refused: %j', async (server) => {
  const file = await kubeconfig(server);
  expect(() => connectKubernetes(file, clock)).toThrow(expect.objectContaining({ code: 'configuration' }));
});

it('outside of a cluster there is no service account', () => {
  vi.stubEnv('KUBERNETES_SERVICE_HOST', undefined);
  vi.stubEnv('KUBERNETES_SERVICE_PORT', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(() => connectKubernetes(undefined, clock)).toThrow(
    expect.objectContaining({
      code: 'configuration',
      message: expect.stringContaining('KUBERNETES_SERVICE_HOST is not set'),
    }),
  );
});

it('the namespace is that of the context', async () => {
  expect(connectKubernetes(await kubeconfig('https://a.example', 'team'), clock).namespace).toBe('team');
  expect(connectKubernetes(await kubeconfig('https://a.example'), clock).namespace).toBeUndefined();
});

it('a request goes to the server as it was asked, and its answer is decoded', async () => {
  const { client, asked } = await serve(201, '{"a":1}');
  expect(
    await client.request('PATCH', '/api/x', {
      query: { q: 'a b', n: 1 },
      body: { c: 2 },
      contentType: 'text/x',
      accept: 'text/y',
    }),
  ).toEqual({ a: 1 });
  await client.request('GET', '/api/y');
  await client.request('POST', '/api/z', { body: {} });
  expect(asked.map(({ line }) => line)).toEqual(['PATCH /api/x?q=a+b&n=1', 'GET /api/y', 'POST /api/z']);
  expect(asked[0]).toMatchObject({
    headers: { 'content-type': 'text/x', accept: 'text/y' },
    body: '{"c":2}',
  });
  expect(asked[1]).toMatchObject({ headers: { accept: 'application/json' }, body: '' });
  expect(asked[2]).toMatchObject({ headers: { 'content-type': 'application/json' }, body: '{}' });
});

it('an answer that is not JSON is a failure, and is not repeated in it', async () => {
  const { client } = await serve(200, '{"secret": "s3cr');
  await expect(client.request('GET', '/api/x')).rejects.toMatchObject({
    code: 'kubernetes_api',
    status: undefined,
    message: expect.stringMatching(/^GET \/api\/x: /),
  });
});

it.each([
  [{ 'retry-after': '7' }, 7000],
  [{ 'retry-after': '0' }, 0],
  [{ 'retry-after': '3600' }, 60_000],
  [{ 'retry-after': '-1' }, undefined],
  [{ 'retry-after': 'Fri, 31 Dec 1999 23:59:59 GMT' }, undefined],
  [{}, undefined],
])('a refusal has its status, and how long to wait: %j', async (headers, retryAfterMs) => {
  const { client } = await serve(429, 'a body that may hold a Secret', headers);
  await expect(client.request('GET', '/api/x')).rejects.toMatchObject({
    message: 'GET /api/x: status 429',
    status: 429,
    retryAfterMs,
  });
});

it('what the account may not do is said to want an upgrade of the release', async () => {
  const { client } = await serve(403, '{}');
  await expect(client.request('GET', '/api/v1/namespaces/shop/secrets/oauth')).rejects.toMatchObject({
    message: expect.stringMatching(/secrets\/oauth: status 403.*; upgrade the release/),
    status: 403,
  });
});

it('a server that is not there is named by the system’s word', async () => {
  const client = connectKubernetes(await kubeconfig(`http://127.0.0.1:${await freePort()}`), clock);
  await expect(client.request('GET', '/api/x')).rejects.toMatchObject({
    message: 'GET /api/x: ECONNREFUSED',
    status: undefined,
    cause: expect.objectContaining({ code: 'ECONNREFUSED' }),
  });
});
