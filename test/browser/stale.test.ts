/** A page whose sidecar is frozen or dead is told from one that is well at a glance. */

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { RunningCommand } from '../support/run-command.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { expectAccessible, openPage, picture, useChromium } from './chromium.ts';

useChromium();

async function startProgram() {
  const provider = await ScriptedTokenEndpoint.start();
  const { directory } = await mountSecret({ client_id: 'shop', client_secret: 'one' });
  const admin = `127.0.0.1:${await freePort()}`;
  const program = new RunningCommand(['proxy'], {
    TOKEN_SIDECAR_TOKEN_URL: provider.url,
    TOKEN_SIDECAR_UPSTREAM: 'http://127.0.0.1:1',
    TOKEN_SIDECAR_CREDENTIALS_DIR: directory,
    TOKEN_SIDECAR_LISTEN: '127.0.0.1:0',
    TOKEN_SIDECAR_ADMIN_LISTEN: admin,
    TOKEN_SIDECAR_TERMINATION_LOG: join(directory, 'none'),
    POD_NAME: 'shop-7d4b9c8f5-x2x9p',
    POD_NAMESPACE: 'payments',
    NODE_NAME: 'node-1',
  });
  await program.output(/"ready"/);
  return { program, url: `http://${admin}/` };
}

it('frozen: what is shown is said to be stale, and is fresh again when the process goes on', async () => {
  const { program, url } = await startProgram();
  const { page } = await openPage(url);
  program.process.kill('SIGSTOP');
  await page
    .getByRole('alert')
    .filter({ hasText: /^Stale: the sidecar is frozen\. What is shown was so at [\d-]+ [\d:]+ UTC\.$/ })
    .waitFor();
  expect(await page.title()).toMatch(/^STALE /);
  expect(await page.locator('#icon').getAttribute('href')).toContain('%236e7681');
  await expectAccessible(page);
  await picture(page, 'stale');
  program.process.kill('SIGCONT');
  await page.locator('body:not(.stale)').waitFor();
  expect(await page.title()).toBe('✔ shop-7d4b9c8f5-x2x9p · payments · node-1 – token-sidecar');
});

it('dead: the page says that nobody answers', async () => {
  const { program, url } = await startProgram();
  const { page } = await openPage(url);
  program.process.kill('SIGKILL');
  await page.getByRole('alert').filter({ hasText: 'Stale: the sidecar does not answer.' }).waitFor();
});
