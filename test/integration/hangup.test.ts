import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { mountGateway } from '../gateway/running-gateway.ts';
import { mountClient } from '../sidecar/reload/running-sidecar.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand } from '../support/run-command.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';

/** A process that runs by a file of this log level, and a way to write another. */
async function start() {
  const { url } = await ScriptedTokenEndpoint.start();
  const dir = await mountClient();
  const textOf = (inFlight: number, more: object = {}): string =>
    JSON.stringify({
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0' },
      limits: { inFlight },
      credentials: [{ name: 'default', tokenUrl: url, dir }],
      routes: [{ name: 'api', upstream: 'http://127.0.0.1:1', credential: 'default' }],
      ...more,
    });
  const volume = await mountSecret({ 'token-sidecar.yaml': textOf(10) });
  const sidecar = new RunningCommand(['proxy', '--config', join(volume.directory, 'token-sidecar.yaml')]);
  await sidecar.output(/"msg":"ready"/);
  const write = (...by: Parameters<typeof textOf>) => volume.update({ 'token-sidecar.yaml': textOf(...by) });
  return { sidecar, write };
}

it('a process takes a changed file into use by itself, and by SIGHUP; SIGTERM ends it as ever', async () => {
  const { sidecar, write } = await start();
  await write(11);
  await sidecar.output(/"generation":2,.*the configuration has changed/);
  await write(12);
  sidecar.process.kill('SIGHUP');
  await sidecar.output(/"generation":3,.*the configuration has changed/);
  sidecar.process.kill('SIGHUP');
  sidecar.process.kill('SIGTERM');
  expect(await sidecar.exited).toMatchObject({ code: 0 });
});

it('a file with a gateway is refused by a running sidecar as by one that starts', async () => {
  const { sidecar, write } = await start();
  const { path } = await mountGateway({}, 'http://127.0.0.1:9');
  const { gateway } = JSON.parse(await readFile(path, 'utf8')) as { readonly gateway: object };
  await write(11, { gateway });
  await sidecar.output(/the configuration file is not valid: the one before stays in use/);
  // Whoever asks again is told the same, with its place: of what is looked at again by itself, nothing is told that is known.
  sidecar.process.kill('SIGHUP');
  await sidecar.output(/(stays in use.*){2}/s);
  const [first, second] = reportsOf(sidecar.stdout);
  expect(first).toMatch(/gateway: expected nothing of it in the file of a sidecar.*\.yaml:1:/s);
  expect(second).toBe(first);
  sidecar.process.kill('SIGTERM');
  expect(await sidecar.exited).toMatchObject({ code: 0 });
});

function reportsOf(log: string): readonly unknown[] {
  const lines = log.trimEnd().split('\n');
  return lines.flatMap((line) => (JSON.parse(line) as { readonly report?: unknown }).report ?? []);
}
