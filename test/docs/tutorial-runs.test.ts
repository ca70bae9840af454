/**
 * The tutorial as far as it goes without a cluster. kind wants Docker, which is not had where these tests run: of `kind create`, `kind load` and
 * `docker build` only names and verbs are looked at. What they carry is tried: the chart as the page installs it, its pod as the
 * webhook would make it, and the issuer and the sidecar in processes, with the Secrets as the page changes them. `npm run test:cluster` tries the rest
 * on a real node, with manifests of its own.
 */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type KubeletSecret, layOutSecret } from '../../src/platform/mounted/secret-layout.ts';
import { run } from '../chart/tools.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand, runToEnd } from '../support/run-command.ts';
import { BLOCKS, kindOf } from './blocks.ts';
import { commandsIn } from './shell.ts';

const OF_PAGE = BLOCKS.filter(({ file }) => file === 'docs/tutorial.md');
const COMMANDS = OF_PAGE.flatMap(({ text }) => commandsIn(text)).map(({ words }) => words);
const MANIFESTS = OF_PAGE.find((block) => kindOf(block) === 'manifest')?.text ?? '';

const after = (words: readonly string[], flag: string): string => words[words.indexOf(flag) + 1] ?? '';

function command(...begins: readonly string[]): readonly string[] {
  const found = COMMANDS.find((words) => begins.every((word, at) => words[at] === word));
  if (found === undefined) throw new Error(`the page has no ${begins.join(' ')}`);
  return found;
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  // biome-ignore lint/suspicious/noExplicitAny: of many kinds
  readonly [key: string]: any;
}

const read = (text: string): Manifest[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);

async function rendered(): Promise<Manifest[]> {
  const [, , release = '', chart = '', ...flags] = command('helm', 'install').filter(
    (word) => word !== '--wait',
  );
  const { ok, stdout, stderr } = await run('helm', [
    'template',
    release,
    chart,
    ...flags,
    '--kube-version',
    '1.34.0',
  ]);
  expect(ok, stderr).toBe(true);
  return read(stdout);
}

const envOf = (container: { env: { name: string; value: string }[] }): Record<string, string> =>
  Object.fromEntries(container.env.map(({ name, value }) => [name, value]));

async function containerOf(component: string): Promise<Manifest> {
  const deployment = (await rendered()).find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === `token-sidecar-${component}`,
  );
  return deployment?.['spec'].template.spec.containers[0];
}

it('the cluster has one name, and the image that is built is the one that it is given and that the chart runs', async () => {
  const cluster = after(command('kind', 'create', 'cluster'), '--name');
  const load = command('kind', 'load', 'docker-image');
  const image = after(command('docker', 'build'), '--tag');
  expect([after(load, '--name'), after(command('kind', 'delete', 'cluster'), '--name')]).toEqual([
    cluster,
    cluster,
  ]);
  expect(load[3]).toBe(image);

  for (const component of ['injector', 'issuer']) {
    // Pulled, it would be looked for in a registry.
    expect(await containerOf(component)).toMatchObject({ image, imagePullPolicy: 'IfNotPresent' });
  }
  const injector = envOf((await containerOf('injector')) as never);
  expect(injector['TOKEN_SIDECAR_DEFAULT_IMAGE']).toBe(image);
});

it('the sidecar asks the issuer where its Service is', async () => {
  const manifests = await rendered();
  const { TOKEN_SIDECAR_DEFAULT_AUTH_URL: authUrl = '' } = envOf((await containerOf('injector')) as never);
  const { hostname, port } = new URL(authUrl);
  const [name, namespace] = hostname.split('.');
  const service = manifests.find(({ kind, metadata }) => kind === 'Service' && metadata.name === name);
  expect(service?.metadata.namespace).toBe(namespace);
  expect(service?.['spec'].ports).toContainEqual(expect.objectContaining({ port: Number(port) }));
});

it('the app gets a sidecar that starts first, with the Secret of its own namespace and the API as the upstream', async () => {
  const {
    TOKEN_SIDECAR_DEFAULT_IMAGE,
    TOKEN_SIDECAR_DEFAULT_AUTH_URL,
    TOKEN_SIDECAR_DEFAULT_ALLOW_INSECURE_TOKEN_URL,
  } = envOf((await containerOf('injector')) as never);
  const { code, stdout, stderr } = await runToEnd(
    ['inject'],
    Object.fromEntries(
      Object.entries({
        TOKEN_SIDECAR_DEFAULT_IMAGE,
        TOKEN_SIDECAR_DEFAULT_AUTH_URL,
        TOKEN_SIDECAR_DEFAULT_ALLOW_INSECURE_TOKEN_URL,
      }).map(([name, value = '']) => [name, value]),
    ),
    MANIFESTS,
  );
  expect(code, stderr).toBe(0);
  const manifests = read(stdout);
  const named = (name: string): Manifest => {
    const found = manifests.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name);
    if (found === undefined) throw new Error(`there is no Deployment ${name}`);
    return found;
  };
  const { initContainers, volumes } = named('app')['spec'].template.spec;
  expect(initContainers[0]).toMatchObject({ name: 'token-sidecar', restartPolicy: 'Always' });
  const upstream = new URL(envOf(initContainers[0])['TOKEN_SIDECAR_UPSTREAM'] ?? '').hostname;
  const api = manifests.find(({ kind }) => kind === 'Service');
  expect(upstream).toBe(`${api?.metadata.name}.${api?.metadata.namespace}.svc`);
  const created =
    COMMANDS.find((words) => words.includes('secret') && after(words, '--namespace') === 'shop') ?? [];
  expect(JSON.stringify(volumes)).toContain(`"name":"${after(created, 'generic')}"`);
  // The one that it calls has none.
  expect(JSON.stringify(named('api'))).not.toContain('token-sidecar');
});

/** The Secrets in the order in which the page makes and changes them. */
function writtenSecrets(): { readonly namespace: string; readonly values: Record<string, string> }[] {
  return COMMANDS.filter((words) => words.includes('secret') && words.includes('generic')).map((words) => ({
    namespace: after(words, '--namespace'),
    values: Object.fromEntries(
      words.flatMap((word) => {
        const [, name, value] = /^--from-literal=(\w+)=(.*)$/.exec(word) ?? [];
        return name === undefined || value === undefined ? [] : [[name, value]];
      }),
    ),
  }));
}

it('the rotation goes as the page says: the log has its words, and every call is answered 200', async () => {
  const [ofIssuer, ofApp, ...changes] = writtenSecrets();
  const page = OF_PAGE.map(({ text }) => text).join('\n');
  const clients = await mkdtemp(join(tmpdir(), 'tutorial-'));
  onTestFinished(() => rm(clients, { recursive: true, force: true }));
  await mkdir(join(clients, 'shop-oauth'));
  const mounted: Record<string, KubeletSecret> = {
    'token-sidecar': await layOutSecret(join(clients, 'shop-oauth'), ofIssuer?.values ?? {}, [
      'client_id',
      'client_secret',
      'second_client_secret',
    ]),
    shop: await mountSecret(ofApp?.values ?? {}),
  };
  const tokens = new Set<string>();
  const api = createServer((request, response) => {
    tokens.add(request.headers.authorization ?? '');
    response.end();
  });
  await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    api.closeAllConnections();
    api.close();
  });
  const [, lifetime = ''] = /issuer\.tokenLifetime=(\S+)/.exec(page) ?? [];
  const issuer = new RunningCommand(['issuer'], {
    TOKEN_SIDECAR_CLIENTS_DIR: clients,
    TOKEN_SIDECAR_TOKEN_LIFETIME: lifetime,
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
  });
  const [, provider] = await issuer.output(/"listen":"([^"]+)"/);
  const sidecar = new RunningCommand(['proxy'], {
    TOKEN_SIDECAR_AUTH_URL: `http://${provider}`,
    TOKEN_SIDECAR_UPSTREAM: `http://127.0.0.1:${(api.address() as AddressInfo).port}`,
    TOKEN_SIDECAR_CREDENTIALS_DIR: mounted['shop']?.directory ?? '',
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_TERMINATION_LOG: '/nonexistent',
  });
  const [, proxy] = await sidecar.output(/"proxy":"([^"]+)"/);
  await sidecar.output(/"msg":"ready"/);
  const call = async (): Promise<number> => (await fetch(`http://${proxy}/`)).status;

  const loads = (): number => issuer.stdout.split('"msg":"clients loaded"').length - 1;
  for (const { namespace, values } of changes) {
    const before = loads();
    await mounted[namespace]?.update(values);
    if (namespace === 'shop') {
      await sidecar.output(/"msg":"credentials changed"/);
      await sidecar.output(/"reason":"rotation".*"msg":"token obtained"/);
    } else {
      await issuer.output(new RegExp(`(?:"msg":"clients loaded"[\\s\\S]*){${before + 1}}`));
    }
    expect(await call()).toBe(200);
  }
  expect([...tokens].every((token) => token.startsWith('Bearer ey'))).toBe(true);
  expect(tokens.size).toBe(2);
  expect(sidecar.stdout).not.toContain('"level":"error"');
});
