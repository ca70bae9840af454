/** The service account token is the one of its file, whatever the clocks do. */

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { connectKubernetes } from '../../../src/platform/kubernetes/client.ts';
import { TokenFile } from '../../../src/platform/kubernetes/configuration.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';

const HOUR_MS = 3_600_000;

async function start() {
  const accepted = new Set<string>();
  let last: string | undefined;
  const server = createServer((request, response) => {
    last = request.headers.authorization?.replace('Bearer ', '');
    response.writeHead(accepted.size === 0 || accepted.has(last ?? '') ? 200 : 401).end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-token-file-'));
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    await rm(directory, { recursive: true, force: true });
  });
  const tokenFile = join(directory, 'token');
  const write = (token: string) => writeFile(tokenFile, token);
  await write('one');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const file = join(directory, 'config');
  const config = {
    clusters: [{ name: 'c', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: { 'auth-provider': { name: 'tokenFile', config: { tokenFile } } } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await writeFile(file, JSON.stringify(config));
  const clock = new ManualClock();
  const api = connectKubernetes(file, clock);
  return {
    clock,
    write,
    accepted,
    tokenFile,
    request: () => api.request('GET', '/version'),
    async sent() {
      await api.request('GET', '/version');
      return last;
    },
  };
}

it('is read anew after a minute, and not before', async () => {
  const { clock, write, sent } = await start();
  expect(await sent()).toBe('one');
  await write('two');
  await clock.advance(59_999);
  expect(await sent()).toBe('one');
  await clock.advance(1);
  expect(await sent()).toBe('two');
});

it('is read anew after a minute that began with a wall clock set back by hours', async () => {
  const { clock, write, sent } = await start();
  expect(await sent()).toBe('one');
  await write('two');
  clock.stepWall(-5 * HOUR_MS);
  await clock.advance(60_000);
  expect(await sent()).toBe('two');
});

it('is read anew after the machine was suspended', async () => {
  const { clock, write, sent } = await start();
  expect(await sent()).toBe('one');
  await write('two');
  clock.stepWall(HOUR_MS);
  expect(await sent()).toBe('two');
});

it('is read by the request after one that the server has refused with 401', async () => {
  const { write, sent, request, accepted } = await start();
  expect(await sent()).toBe('one');
  await write('two');
  accepted.add('two');
  await expect(request()).rejects.toMatchObject({ status: 401 });
  expect(await sent()).toBe('two');
});

it('stays if its file is gone', async () => {
  const { clock, sent, request, tokenFile } = await start();
  expect(await sent()).toBe('one');
  await rm(tokenFile);
  await clock.advance(60_000);
  await expect(request()).rejects.toThrow('the service account cannot be used: ENOENT');
});

it('is read anew after a refusal that came while it was being read', async () => {
  const path = await temporaryFile('token', 'before');
  const tokens = new TokenFile(path, new ManualClock());
  const reading = tokens.current();
  tokens.refused();
  expect(await reading).toBe('before');
  await writeFile(path, 'after');
  expect(await tokens.current()).toBe('after');
});
