import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { startSidecar } from '../../src/sidecar/sidecar.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

async function start(output: unknown, settings: Record<string, unknown> = {}) {
  const provider = await ScriptedTokenEndpoint.start();
  const { directory: dir } = await mountSecret({ client_id: 'shop', client_secret: 'one' });
  const path = await temporaryFile(
    'token-sidecar.json',
    JSON.stringify({
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0' },
      credentials: [{ name: 'kafka', tokenUrl: provider.url, dir, output }],
      routes: [{ name: 'api', upstream: 'http://127.0.0.1:9', credential: 'kafka' }],
      ...settings,
    }),
  );
  const { log, lines } = captureLog();
  const config = await loadConfig({ config: { key: '--config', text: path } });
  let quits = 0;
  const sidecar = await startSidecar({ config, log, quit: () => quits++ });
  onTestFinished(() => sidecar.stop());
  await sidecar.ready;
  return { sidecar, lines, quits: () => quits };
}

it('a token is a file and is given on loopback, until the sidecar stops', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'outputs-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, 'token');
  const tokenEndpoint = { listen: '127.0.0.1:0' };
  const { sidecar, lines } = await start({ file, mode: '0600', endpoint: true }, { tokenEndpoint });
  await expect.poll(() => readFile(file, 'utf8').catch(() => '')).toBe('token-1');

  const { tokenEndpoint: address } = sidecar;
  if (address === undefined) throw new Error('no token endpoint');
  const url = `http://${formatAddress(address)}/token/kafka`;
  const asked = await fetch(url, {
    method: 'POST',
    headers: { authorization: 'Basic eDp5' },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  });
  expect(await asked.json()).toMatchObject({ access_token: 'token-1', token_type: 'Bearer' });

  await sidecar.stop();
  expect(await readdir(directory)).toEqual([]);
  await expect(fetch(url)).rejects.toThrow();
  expect(lines.join('')).not.toContain('token-1');
});

it('whoever comes through the forward proxy gets no token and ends nothing', async () => {
  const { sidecar, quits } = await start(
    { endpoint: true },
    {
      tokenEndpoint: { listen: '127.0.0.1:0' },
      forwardProxy: { otherHosts: 'pass', allow: [{ host: 'listed.test', credential: 'kafka' }] },
    },
  );
  const { tokenEndpoint, adminAddress, proxyAddress } = sidecar;
  if (tokenEndpoint === undefined) throw new Error('no token endpoint');
  for (const [method, to, path] of [
    ['GET', tokenEndpoint, '/token/kafka'],
    ['POST', adminAddress, '/quitquitquit'],
  ] as const) {
    const host = formatAddress(to);
    const headers = { host, 'token-sidecar-request': 'true' };
    const asked = request({ ...proxyAddress, method, path: `http://${host}${path}`, headers, agent: false });
    const [answer] = (await once(asked.end(), 'response')) as [IncomingMessage];
    expect(await text(answer)).toContain('destination_not_allowed');
    expect(answer.statusCode).toBe(403);
  }
  expect(quits()).toBe(0);
});

it('there is neither unless it is asked for', async () => {
  const { sidecar } = await start(undefined);
  expect(sidecar.tokenEndpoint).toBeUndefined();
});

it.each([
  [{ mode: '0640' }, {}, 'credentials[0].output.mode: "0640": expected nothing without file'],
  [{ file: 'token' }, {}, 'credentials[0].output.file: "token": expected an absolute path'],
  [{ file: '/tmp/token', mode: '0755' }, {}, 'credentials[0].output.mode: "0755": expected permission bits'],
  [
    { file: '/tmp/token', group: -1 },
    {},
    'credentials[0].output.group: "-1": expected the number of a group',
  ],
  [
    { endpoint: true },
    { tokenEndpoint: { listen: '0.0.0.0:15082' } },
    'tokenEndpoint.listen: "0.0.0.0:15082": expected an address of loopback',
  ],
  [undefined, { tokenEndpoint: {} }, 'tokenEndpoint: expected a credential with output.endpoint: true'],
  [
    { file: '/nowhere/token' },
    {},
    'credential kafka: output.file /nowhere/token: expected a file in a directory that can be written',
  ],
])('%j with %j is refused', async (output, settings, message) => {
  await expect(start(output, settings)).rejects.toThrow(message);
});
