/** The mode redirect calls C; nothing else does, and it says so where it cannot. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand } from '../support/run-command.ts';

const SRC = join(import.meta.dirname, '../../src');
const OFF = { NODE_OPTIONS: '--no-experimental-ffi' };
const KNOWN = process.allowedNodeEnvironmentFlags.has('--experimental-ffi');
const WHY_SKIPPED = `Node ${process.versions.node} has no interface to C that could be turned off`;

const SIDECAR = {
  TOKEN_SIDECAR_TOKEN_URL: 'http://127.0.0.1:9/token',
  TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
  TOKEN_SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
};

async function start(...args: string[]): Promise<RunningCommand> {
  const { directory } = await mountSecret({ client_id: 'shop', client_secret: 'secret' });
  return new RunningCommand(['proxy', ...args], {
    ...SIDECAR,
    ...OFF,
    TOKEN_SIDECAR_CREDENTIALS_DIR: directory,
    TOKEN_SIDECAR_TRUST_DIR: join(directory, 'trust'),
  });
}

it.for<[string, () => Promise<RunningCommand>]>([
  ['the command redirect', async () => new RunningCommand(['redirect'], OFF)],
  ['the sidecar with redirected hosts', () => start('--redirect-hosts', 'api.example.com')],
])(
  '%s ends with 78 where there is no interface to C, and says what is missing',
  async ([, started], { skip }) => {
    skip(!KNOWN, WHY_SKIPPED);
    const command = await started();
    expect(await command.exited).toMatchObject({ code: 78 });
    expect(command.stderr).toContain("redirect needs Node's foreign-function interface");
  },
);

it('every other mode runs without it', async ({ skip }) => {
  skip(!KNOWN, WHY_SKIPPED);
  const sidecar = await start('--hosts', 'api.example.com');
  await sidecar.output(/"msg":"listening"/);
  sidecar.process.kill('SIGTERM');
  await sidecar.exited;
});

it('one file asks for it', () => {
  const asking = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .filter((file) => /['"]node:ffi['"]/.test(readFileSync(join(SRC, file), 'utf8')));
  expect(asking).toEqual(['redirect/netfilter/c-functions.ts']);
});
