import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkListeners } from '../../src/check/check-all.ts';
import { holderOf } from '../../src/config/address-conflicts.ts';
import type { GatewayConfig } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { mountGateway } from '../gateway/running-gateway.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand } from '../support/run-command.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { examination, lines } from './examined.ts';

async function examined(listen: string, admin: string): Promise<string[]> {
  const setting = (text: string) => ({ key: 'test', text });
  const config = await loadConfig({
    'token-url': setting('https://sso.example.com/token'),
    upstream: setting('https://api.example.com'),
    listen: setting(listen),
    'admin-listen': setting(admin),
  });
  return lines(await checkListeners(config, examination()));
}

it('addresses are free, or told by the system', async () => {
  expect(await examined('127.0.0.1:0', '127.0.0.1:0')).toEqual([
    'ok proxy: listener: 127.0.0.1:0: the system picks a port',
    'ok admin: listener: 127.0.0.1:0: the system picks a port',
  ]);
});

it('every address that another program has is a failure', async () => {
  const servers = [createServer(), createServer()];
  const ports = await Promise.all(
    servers.map(async (server) => {
      await once(server.listen(0, '127.0.0.1'), 'listening');
      onTestFinished(() => void server.close());
      return (server.address() as AddressInfo).port;
    }),
  );
  const found = await examined(`127.0.0.1:${ports[0]}`, `127.0.0.1:${ports[1]}`);
  expect(found).toEqual([
    expect.stringMatching(
      new RegExp(`^failure proxy: listener: .*\\(process ${process.pid}\\) listens there`),
    ),
    expect.stringMatching(
      new RegExp(`^failure admin: listener: .*\\(process ${process.pid}\\) listens there`),
    ),
  ]);
});

it('an address that this machine does not have is a failure', async () => {
  expect((await examined('192.0.2.1:15080', '127.0.0.1:0'))[0]).toMatch(/^failure .*EADDRNOTAVAIL/);
});

it('a sidecar that runs there is none', async () => {
  const provider = await ScriptedTokenEndpoint.start();
  const { directory } = await mountSecret({ client_id: 'shop', client_secret: 's3cret' });
  const sidecar = new RunningCommand([], {
    TOKEN_SIDECAR_TOKEN_URL: provider.url,
    TOKEN_SIDECAR_UPSTREAM: 'https://127.0.0.1:1',
    TOKEN_SIDECAR_CREDENTIALS_DIR: directory,
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
  });
  const [, proxy, admin] = await sidecar.output(/"proxy":"([^"]+)","admin":"([^"]+)"/);
  expect(await examined(proxy as string, admin as string)).toEqual([
    `ok proxy: listener: ${proxy}: the sidecar listens there`,
    `ok admin: listener: ${admin}: the sidecar listens there`,
  ]);
});

it('a gateway that runs there is none', async () => {
  const { path } = await mountGateway({}, 'http://127.0.0.1:9');
  const gateway = new RunningCommand(['gateway', '--config', path]);
  const [, callers, admin] = await gateway.output(/"proxy":"([^"]+)","admin":"([^"]+)"/);
  const config = await loadConfig({ config: { key: 'test', text: path } });
  const at = (address: string) => ({ host: '127.0.0.1', port: Number(address.split(':')[1]) });
  const section = { ...(config.gateway as GatewayConfig), listen: at(callers as string) };
  const running = { ...config, gateway: section, admin: { ...config.admin, listen: at(admin as string) } };
  expect(lines(await checkListeners(running, examination()))).toEqual([
    `ok gateway: listener: ${callers}: the sidecar listens there`,
    `ok admin: listener: ${admin}: the sidecar listens there`,
  ]);
});

it('who has a port is not looked for beyond the time there is', async () => {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;

  const address = { host: '127.0.0.1', port };
  expect(await holderOf(address)).toMatchObject({ pid: process.pid });
  expect(await holderOf(address, AbortSignal.abort())).toBeUndefined();
});

/** Which nobody has at any address: the system gives the port of one address to somebody else at another. */
async function freePort(): Promise<number> {
  const everywhere = createServer();
  await once(everywhere.listen(0, '::'), 'listening');
  const { port } = everywhere.address() as AddressInfo;
  await once(everywhere.close(), 'close');
  return port;
}

describe('who has the port at one address', () => {
  const held = { pid: process.pid };
  it.each([
    ['127.0.0.3', { '127.0.0.3': held, '127.0.0.4': undefined, '0.0.0.0': held, localhost: held }],
    ['0.0.0.0', { '127.0.0.4': held, '::1': undefined, '::': held }],
    ['::1', { '::1': held, '::2': undefined, '127.0.0.1': undefined, '0.0.0.0': undefined, '::': held }],
    ['::', { '127.0.0.4': held, '::1': held }],
    ['::ffff:127.0.0.3', { '127.0.0.3': held, '127.0.0.4': undefined }],
  ])('is not who has it at another one: %s', async (listening, asked) => {
    const port = await freePort();
    const server = createServer();
    await once(server.listen(port, listening), 'listening');
    onTestFinished(() => void server.close());
    const found = Object.keys(asked).map(async (host) => [host, await holderOf({ host, port })] as const);
    const pids = (await Promise.all(found)).map(([host, holder]) => [host, holder && { pid: holder.pid }]);
    expect(Object.fromEntries(pids)).toEqual(asked);
  });
});
