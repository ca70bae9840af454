/** Where a sidecar listens: what its one list says is what the system sees, and each of them is named where it is taken. */

import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { checkListeners } from '../../src/check/check-all.ts';
import { checkUpstream, upstreamsOf } from '../../src/check/upstream.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openListener, sidecarListeners } from '../../src/config/sidecar-listeners.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { examination, lines } from '../check/examined.ts';
import { freePort } from '../support/free-port.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand } from '../support/run-command.ts';
import { runHere } from '../support/run-here.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';

const CAN_REDIRECT = process.allowedNodeEnvironmentFlags.has('--experimental-ffi');
const WHY_NOT = `Node ${process.versions.node} has no interface to C, which redirection needs`;

/** A sidecar with a listener of every kind, as a file, and the ports of its listeners. */
async function everyKind(upstream = 'https://api.example.com') {
  const provider = await ScriptedTokenEndpoint.start();
  const { directory: dir } = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
  const directory = await mkdtemp(join(tmpdir(), 'listeners-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const ports = {
    proxy: await freePort(),
    admin: await freePort(),
    tokens: await freePort(),
    tls: await freePort(),
    clear: await freePort(),
    redirect: await freePort(),
  };
  const file = join(directory, 'token-sidecar.yaml');
  const text = JSON.stringify({
    listen: `127.0.0.1:${ports.proxy}`,
    admin: { listen: `127.0.0.1:${ports.admin}` },
    tokenEndpoint: { listen: `127.0.0.1:${ports.tokens}` },
    credentials: [{ name: 'default', tokenUrl: provider.url, dir, output: { endpoint: true } }],
    routes: [{ name: 'a', upstream }],
    capture: {
      hosts: [{ host: 'api.test', address: '127.0.0.2', ports: [ports.tls], clearPorts: [ports.clear] }],
    },
    redirect: { port: ports.redirect, hosts: [{ host: 'pay.test' }] },
    interception: { directory },
  });
  await writeFile(file, text);
  const config = await loadConfig({ config: { key: '--config', text: file } });
  return { file, ports, config };
}

const start = (file: string) => ['--config', file, '--termination-log', '/nonexistent'];

/** By proc(5): the sockets of a process that listen. */
async function listeningSockets(pid: number): Promise<number> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/${pid}/net/${name}`, 'utf8').catch(() => '')),
  );
  const listening = new Set(
    tables.flatMap((table) =>
      table.split('\n').flatMap((line) => {
        const fields = line.trim().split(/\s+/);
        return fields[3] === '0A' ? [`socket:[${fields[9]}]`] : [];
      }),
    ),
  );
  const descriptors = await readdir(`/proc/${pid}/fd`);
  const targets = await Promise.all(
    descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')),
  );
  return targets.filter((target) => listening.has(target)).length;
}

it('all of them are listed, and check sees that the sidecar has them', async ({ skip }) => {
  skip(!CAN_REDIRECT, WHY_NOT);
  const { file, config } = await everyKind();
  const sidecar = new RunningCommand(start(file), {});
  await sidecar.output(/"msg":"listening"/);
  const listeners = sidecarListeners(config);
  const found = lines(await checkListeners(config, examination()));
  expect(found).toEqual(
    listeners.map(({ what, address, mayLack }) =>
      expect.stringMatching(
        new RegExp(
          `^ok ${what}: listener: ${formatAddress(address).replace(/[[\]]/g, '\\$&')}: (?:the sidecar listens there${mayLack ? '|this machine has none' : ''})`,
        ),
      ),
    ),
  );
  const lacking = found.filter((line) => line.includes('this machine has none')).length;
  expect(await listeningSockets(sidecar.process.pid as number)).toBe(listeners.length - lacking);
});

it('each that another program has is named, with the key that says it', async ({ skip }) => {
  skip(!CAN_REDIRECT, WHY_NOT);
  const { file, ports, config } = await everyKind();
  const takers = [
    ['127.0.0.1', ports.tokens],
    ['127.0.0.2', ports.tls],
    ['127.0.0.2', ports.clear],
    ['127.0.0.1', ports.redirect],
  ] as const;
  for (const [host, port] of takers) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen({ host, port }, resolve));
    onTestFinished(() => void server.close());
  }
  const findings = await checkListeners(config, examination());
  expect(findings.filter(({ verdict }) => verdict === 'failure').map(({ what }) => what)).toEqual([
    'token endpoint: listener',
    'capture of api.test: listener',
    'capture of api.test: listener',
    'redirected connections: listener',
  ]);
  const { code, stderr } = await runHere(['proxy', ...start(file)]);
  expect(code).toBe(78);
  for (const named of [
    `tokenEndpoint.listen: "127.0.0.1:${ports.tokens}"`,
    `capture.hosts[0].address: "127.0.0.2:${ports.tls}"`,
    `capture.hosts[0].address: "127.0.0.2:${ports.clear}"`,
    `redirect.port: "127.0.0.1:${ports.redirect}"`,
  ]) {
    expect(stderr).toContain(named);
  }
  expect(stderr).toContain('4 problems.');
});

it('none of them is taken for an upstream', async () => {
  const { config } = await everyKind();
  for (const { what, address } of sidecarListeners(config)) {
    const routes = config.routes.map((route) => {
      const { host, port } = address;
      return { ...route, upstream: { ...route.upstream, host, port, authority: formatAddress(address) } };
    });
    const [route] = upstreamsOf({ ...config, routes }, new Map());
    const findings =
      route && (await checkUpstream(route, config, undefined, examination({ isOffline: true })));
    expect(lines(findings ?? [])).toEqual([
      expect.stringContaining(`is the sidecar itself (${what}, ${formatAddress(address)})`),
    ]);
  }
});

it('a proxy beyond loopback is warned of by check and at start, with the ways out', async () => {
  const { file, config } = await everyKind();
  const text = JSON.parse(await readFile(file, 'utf8')) as object;
  await writeFile(file, JSON.stringify({ ...text, listen: '0.0.0.0:0', redirect: undefined }));
  const { stdout } = await runHere(['check', '--offline', '--config', file]);
  expect(stdout).toMatch(
    /WARN {2}proxy: callers .* whoever reaches this address uses the token\n.*network_mode/,
  );
  expect(openListener(config)).toBeUndefined();

  const sidecar = new RunningCommand(start(file), {});
  await sidecar.output(/"msg":"ready"/);
  expect(
    sidecar.stdout.match(/"level":"warn".*"msg":"whoever reaches this address uses the token"/g),
  ).toHaveLength(1);
});
