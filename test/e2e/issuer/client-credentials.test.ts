import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JSONWebKeySet } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { RunningCommand } from '../../support/run-command.ts';
import { runSidecar } from '../support/sidecar.ts';
import { startTraffic, tokenId } from '../support/traffic.ts';
import { startUpstream, verifyByKeys } from '../support/upstream.ts';

const SPECIAL = 'p+w %41:/=&?#"\\ äöü €';

/** The issuer as a process of its own, with a clients file that can be replaced. */
async function startIssuerProcess(secret: string, tokenLifetime: string) {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-issuer-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, 'clients.yaml');
  const write = async (clientSecret: string): Promise<void> => {
    const client = { clientId: 'shop+special', clientSecret, tokenLifetime, scopes: ['read', 'write'] };
    await writeFile(`${file}.next`, JSON.stringify({ clients: [client] }));
    await rename(`${file}.next`, file);
  };
  await write(secret);
  const args = ['--clients-file', file, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
  const process = new RunningCommand(['issuer', ...args]);
  const [, line = ''] = await process.output(/^(\{.*"msg":"ready".*\})$/m);
  const { issuer, tokenUrl, admin } = JSON.parse(line) as Record<string, string>;
  const keys = (await (await fetch(`http://${admin}/jwks`)).json()) as JSONWebKeySet;
  return { write, process, tokenUrl, verify: verifyByKeys(keys, issuer ?? '') };
}

describe("the project's own issuer", () => {
  it.each(['form', 'raw'])('client_secret_basic, %s', async (basicEncoding) => {
    const { tokenUrl, verify } = await startIssuerProcess(SPECIAL, '60s');
    const sidecar = await runSidecar({
      credential: { tokenUrl, basicEncoding, scope: 'read' },
      files: { client_id: 'shop+special', client_secret: SPECIAL },
      upstream: await startUpstream(verify),
    });
    expect(await sidecar.request()).toMatchObject({
      status: 200,
      body: { claims: { azp: 'shop+special', scope: 'read' } },
    });
  });

  it('short tokens and a rotated secret, under traffic', async () => {
    const { tokenUrl, verify, write, process } = await startIssuerProcess('first-secret', '5s');
    const sidecar = await runSidecar({
      credential: { tokenUrl },
      files: { client_id: 'shop+special', client_secret: 'first-secret' },
      upstream: await startUpstream(verify),
    });
    const traffic = startTraffic(sidecar);
    const seen = new Set<string | undefined>();
    await traffic.until(({ body }) => seen.add(tokenId(body)).size === 2);
    await write('second-secret');
    // Once at the start, and again now.
    await process.output(/("msg":"clients loaded"[\s\S]*){2}/);
    await sidecar.remount({ client_id: 'shop+special', client_secret: 'second-secret' });
    await traffic.until(() => sidecar.grants().includes('rotation success'));
    const answers = await traffic.stop();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  });
});
