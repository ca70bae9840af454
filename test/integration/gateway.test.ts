import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { mountGateway, servers, startUpstream, UPSTREAM_TOKEN, web } from '../gateway/running-gateway.ts';
import { RunningCommand } from '../support/run-command.ts';
import { runHere } from '../support/run-here.ts';

it('serves callers with a certificate, and ends with 0 by SIGTERM', async () => {
  const upstream = await startUpstream();
  const { path } = await mountGateway({}, upstream.url);
  const gateway = new RunningCommand(['gateway', '--config', path]);
  const [, port] = await gateway.output(/"proxy":"127\.0\.0\.1:(\d+)"/);
  await gateway.output(/"msg":"ready"/);

  const { cert, key } = web;
  const tls = {
    host: '127.0.0.1',
    port: Number(port),
    ca: servers.cert,
    servername: 'gateway.test',
    cert,
    key,
  };
  // A connection that was kept would be waited for at the end.
  const asked = request({ ...tls, path: '/api/', agent: false }).end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  await once(answer, 'end');

  expect(answer.statusCode).toBe(200);
  expect(upstream.requests[0]?.headers.authorization).toBe(`Bearer ${UPSTREAM_TOKEN}`);
  gateway.process.kill('SIGTERM');
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
  expect(gateway.stdout + gateway.stderr).not.toContain(UPSTREAM_TOKEN);
});

it('takes a changed file into use while its certificate on disk is none, and does not start with that', async () => {
  const { directory, path } = await mountGateway({}, 'http://127.0.0.1:9');
  const gateway = new RunningCommand(['gateway', '--config', path]);
  await gateway.output(/"msg":"ready"/);
  await writeFile(join(directory, 'tls.crt'), 'half of one');
  await writeFile(join(directory, 'ca.crt'), 'half of one');
  await writeFile(
    path,
    JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), limits: { inFlight: 50 } }),
  );
  gateway.process.kill('SIGHUP');
  await gateway.output(/"generation":2,.*the configuration has changed/);
  gateway.process.kill('SIGTERM');
  expect(await gateway.exited).toMatchObject({ code: 0 });

  const { code, stderr } = await runHere(['gateway', '--config', path]);
  expect(code).toBe(78);
  expect(stderr).toContain('gateway.tls.certFile');
  expect(stderr).toContain('gateway.clientCaFile');
});

it('ends with 78 without a file, or with one that says nothing of callers; proxy does with one that has them', async () => {
  const { directory, path } = await mountGateway({}, 'http://127.0.0.1:9');
  const plain = join(directory, 'plain.yaml');
  await writeFile(
    plain,
    JSON.stringify({
      credentials: [{ name: 'default', tokenUrl: 'https://sso.test/token' }],
      routes: [{ name: 'api', upstream: 'https://api.test' }],
    }),
  );
  const ends = await Promise.all([
    runHere(['gateway']),
    runHere(['gateway', '--config', plain]),
    runHere(['proxy', '--config', path, '--termination-log', join(directory, 'none')]),
  ]);
  expect(ends.map(({ code }) => code)).toEqual([78, 78, 78]);
  const said = ends.map(({ stderr }) => stderr);
  expect(said[0]).toContain('--config: expected a configuration file with a section gateway');
  expect(said[1]).toContain('gateway: expected where callers come in');
  expect(said[2]).toContain('gateway: expected nothing of it in the file of a sidecar');
  expect(said[2]).toContain(`${path}:1:`);
});
