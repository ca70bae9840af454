/** `token-sidecar injector wait`, as the check after an installation runs it. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { injector } from '../../../src/injector/program.ts';

const REFUSAL = { kind: 'Status', message: 'failed calling webhook "check.token-sidecar.dev": x509' };
const ANSWER = {
  kind: 'Status',
  message:
    'admission webhook "check.token-sidecar.dev" denied the request: the webhook of token-sidecar answers',
};

/** Kubeconfig of an API server that gives these answers in turn, and then the last of them. */
async function kubeconfigOf(answers: readonly { readonly status: number; readonly body: object }[]) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const answer = answers[Math.min(asked.length, answers.length) - 1];
    response.writeHead(answer?.status ?? 500, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer?.body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const directory = await mkdtemp(join(tmpdir(), 'injector-wait-'));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true });
  });
  const path = join(directory, 'kubeconfig');
  const { port } = server.address() as AddressInfo;
  const config = {
    clusters: [
      { name: 'c', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } },
    ],
    users: [{ name: 'u', user: { token: 't' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'tokens' } }],
    'current-context': 'x',
  };
  await writeFile(path, JSON.stringify(config));
  return { path, asked };
}

async function run(...args: readonly string[]) {
  const out: string[] = [];
  const status = await injector.run({
    args,
    env: {},
    stdout: { write: (text: string) => out.push(text) },
    stderr: { write: (text: string) => out.push(text) },
    logOutput: { losses: { output: 0, repeated: 0 }, write: () => undefined },
    stdin: process.stdin,
    shutdown: { signal: new AbortController().signal },
  } as never);
  return { status, out: out.join('') };
}

it('ends with 0 once the API server gets an answer, and repeats what the API server said before', async () => {
  const { path, asked } = await kubeconfigOf([
    { status: 500, body: REFUSAL },
    { status: 403, body: ANSWER },
  ]);

  const { status, out } = await run('wait', '--kubeconfig', path);

  expect(status).toBe(0);
  expect(out).toContain(`status 500: ${REFUSAL.message}\n`);
  expect(out).toContain('the webhook answers the API server');
  expect(asked).toEqual(Array(2).fill('POST /api/v1/namespaces/tokens/configmaps?dryRun=All'));
});

it('fails when there is none in time', async () => {
  const { path } = await kubeconfigOf([{ status: 500, body: REFUSAL }]);

  await expect(run('wait', '--kubeconfig', path, '--wait-timeout', '0s')).rejects.toMatchObject({
    code: 'kubernetes_api',
    message: expect.stringContaining('x509'),
  });
});

it('takes no other operand', async () => {
  await expect(run('weit')).rejects.toMatchObject({ code: 'usage' });
});
