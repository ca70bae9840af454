/** Whatever is wrong with a kubeconfig or a token, neither what is said nor what is logged of it holds a part of them. */

import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { KubernetesApiError } from '../../../src/platform/kubernetes/api.ts';
import { connectKubernetes } from '../../../src/platform/kubernetes/client.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { runHere } from '../../support/run-here.ts';

const MARKER = 'S3CRET-part';

async function fileOf(content: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-kubeconfig-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, 'config');
  await writeFile(file, content);
  return file;
}

function kubeconfig(user: object, server = 'http://127.0.0.1:1', cluster: object = {}): Promise<string> {
  return fileOf(
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true, ...cluster } }],
      users: [{ name: 'u', user }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'tokens' } }],
      'current-context': 'x',
    }),
  );
}

/** What a failed request says, and what the log has of it. */
async function told(file: string): Promise<{ readonly message: string; readonly lines: string }> {
  const { log, lines } = captureLog();
  const error = await connectKubernetes(file, new ManualClock())
    .request('GET', '/version')
    .then(
      () => expect.unreachable(),
      (thrown: KubernetesApiError) => thrown,
    );
  log.warn({ err: error }, 'it failed');
  return { message: error.message, lines: lines.join('') };
}

describe('credentials that cannot be sent', () => {
  it.each([
    ['a line break', `eyJhbGciOi.${MARKER}\npart.of-a-token`],
    ['a character beyond Latin-1', `eyJhbGciOi.${MARKER}…`],
    ['a control character', `eyJhbGciOi.${MARKER}\u0001`],
  ])('as a token with %s', async (_, token) => {
    const { message, lines } = await told(await kubeconfig({ token }));
    expect(message).toMatch(
      /^GET \/version: Authorization cannot be sent: there is a line break, or another/,
    );
    expect(lines).toContain(message);
    expect(lines).not.toContain(MARKER);
  });

  it('are those of a file of two lines', async () => {
    const tokenFile = await fileOf(`eyJhbGciOi.${MARKER}\nsecond line\n`);
    const { message, lines } = await told(
      await kubeconfig({ 'auth-provider': { name: 'tokenFile', config: { tokenFile } } }),
    );
    expect(message).toContain('Authorization cannot be sent');
    expect(lines).not.toContain(MARKER);
  });

  it('are not those of a file that ends with its line', async () => {
    const server = createServer((request, response) => {
      response.end(JSON.stringify(request.headers.authorization));
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close().closeAllConnections());
    await once(server, 'listening');
    const tokenFile = await fileOf('a-token\r\n');
    const user = { 'auth-provider': { name: 'tokenFile', config: { tokenFile } } };
    const file = await kubeconfig(user, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(await connectKubernetes(file, new ManualClock()).request('GET', '/version')).toBe(
      'Bearer a-token',
    );
  });
});

describe('what is not shown of a request that fails', () => {
  const plugin = (script: string) => ({
    exec: { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: ['-e', script] },
  });

  it.each([
    ['what a plugin printed', plugin(`process.stdout.write('${MARKER}')`)],
    ['why a plugin failed', plugin(`process.stderr.write('${MARKER}'); process.exitCode = 1`)],
    [
      'the path of a token that is not there',
      { 'auth-provider': { name: 'f', config: { tokenFile: MARKER } } },
    ],
  ])('%s', async (_, user) => {
    const { message, lines } = await told(await kubeconfig(user));
    expect(message).toMatch(
      /^GET \/version: the kubeconfig or the service account cannot be used(: ENOENT)?$/,
    );
    expect(lines).not.toContain(MARKER);
  });

  it.each([
    ['the userinfo of the server', `http://u:${MARKER}@127.0.0.1:1`, {}],
    ['the userinfo of a proxy', 'http://127.0.0.1:1', { 'proxy-url': `u:${MARKER}@proxy` }],
  ])('%s', async (_, server, cluster) => {
    const { message, lines } = await told(await kubeconfig({}, server, cluster));
    expect(message).toMatch(/^GET \/version: /);
    expect(lines).not.toContain(MARKER);
  });

  it('a value that Node does not take', async () => {
    const { lines } = await told(
      await kubeconfig({}, 'https://127.0.0.1:1', { 'tls-server-name': [MARKER] }),
    );
    expect(lines).not.toContain(MARKER);
  });
});

describe('a kubeconfig that cannot be used is told without what stands in it', () => {
  it.each([
    [
      'by its place',
      `users:\n- name: u\n  user:\n    token: eyJhbGciOi.${MARKER}.abc\n   client-key-data: ${MARKER}\n`,
      'line 5, column 4: expected valid YAML or JSON',
    ],
    [
      'by its place in JSON',
      `{"users": [{"token": "${MARKER}" "x"}]}`,
      /line 1, column \d+: expected valid YAML/,
    ],
    ['of an alias', `token: *${MARKER}\n`, /line 1, column \d+: expected valid YAML/],
    ['of text', MARKER, 'there is no service account here'],
    ['of nothing', '', 'expected a kubeconfig: a mapping with clusters, contexts and users'],
    ['of what is missing', 'users: [{token: x}]', 'users[0].name is missing'],
    ['of another kind', `clusters: [{name: c, cluster: {server: [${MARKER}]}}]`, 'expected a kubeconfig: '],
    [
      'of a file that it names',
      `users: [{name: u, user: {token-file: /nowhere/${MARKER}}}]`,
      'a file that it names cannot be read: ENOENT',
    ],
  ])('%s', async (_, content, expected) => {
    const { code, stdout, stderr } = await runHere([
      'injector',
      'wait',
      '--kubeconfig',
      await fileOf(content),
    ]);
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toMatch(expected);
    expect(stderr).not.toContain(MARKER);
  });
});

it('`injector wait` says that a token cannot be sent, and shows none of it', async () => {
  const file = await kubeconfig({ token: `eyJhbGciOi.${MARKER}\npart` });
  const { code, stderr } = await runHere(['injector', 'wait', '--kubeconfig', file, '--wait-timeout', '0s']);
  expect(code).toBe(69);
  expect(stderr).toContain('Authorization cannot be sent');
  expect(stderr).not.toContain(MARKER);
});

it('a request that is not answered in time says so', async () => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close().closeAllConnections());
  await once(server, 'listening');
  const file = await kubeconfig({}, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const asked = connectKubernetes(file, new ManualClock()).request('GET', '/version', { timeoutMs: 1 });
  await expect(asked).rejects.toThrow('GET /version: no whole answer in time');
});
