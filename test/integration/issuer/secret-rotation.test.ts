import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from '@prometheus-io/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseClients, readClientsDirectory, watchClients } from '../../../src/issuer/client-sources.ts';
import { createIssuerMetrics } from '../../../src/issuer/metrics.ts';
import { hashSecret } from '../../../src/issuer/secret-hashing.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { captureLog } from '../../support/log-capture.ts';
import { askForToken, basic, runIssuer } from './running-issuer.ts';

const COST = { ln: 1, r: 1, p: 1 };
const OLD_HASH = await hashSecret('old', COST);
const NEW_HASH = await hashSecret('new', COST);

async function accepted(tokenUrl: string, secrets: readonly string[]): Promise<readonly string[]> {
  const answers = await Promise.all(
    secrets.map((secret) => askForToken(tokenUrl, { authorization: basic('shop', secret) })),
  );
  return secrets.filter((_, index) => answers[index]?.status === 200);
}

describe('a rotation of a client secret', () => {
  it('overlaps in a mounted Secret: both are right until the second is taken away', async () => {
    const root = await mkdtemp(join(tmpdir(), 'token-sidecar-rotation-'));
    onTestFinished(() => rm(root, { recursive: true, force: true }));
    const secret = await mountSecret({ client_id: 'shop', client_secret: 'old' });
    await symlink(secret.directory, join(root, 'shop'));
    let reloaded = Promise.withResolvers<void>();
    const metrics = {
      ...createIssuerMetrics(new Registry()),
      reloaded: () => setImmediate(reloaded.resolve),
    };
    const live = await watchClients(() => readClientsDirectory(root, '--clients-dir'), {
      ...{ clock: systemClock, pollMs: 3_600_000, metrics },
      log: captureLog().log,
    });
    onTestFinished(() => live.close());
    const { tokenUrl, close } = await runIssuer([], { clients: live.store });
    onTestFinished(() => close(0));

    const steps: [files: Record<string, string>, right: readonly string[]][] = [
      [{ client_secret: 'old', second_client_secret: 'new' }, ['old', 'new']],
      [{ client_secret: 'new', second_client_secret: 'old' }, ['old', 'new']],
      [{ client_secret: 'new', second_secret_hash: OLD_HASH }, ['old', 'new']],
      [{ client_secret: 'new' }, ['new']],
    ];
    expect(await accepted(tokenUrl, ['old', 'new'])).toEqual(['old']);
    for (const [files, right] of steps) {
      reloaded = Promise.withResolvers();
      await secret.update({ client_id: 'shop', ...files });
      await reloaded.promise;
      expect(await accepted(tokenUrl, ['old', 'new'])).toEqual(right);
    }
  });

  it.each([
    ['in clear', 'clientSecret: old, secondClientSecret: new'],
    ['from clear to a hash', `clientSecret: old, secondSecretHash: "${NEW_HASH}"`],
    ['of hashes', `secretHash: "${OLD_HASH}", secondSecretHash: "${NEW_HASH}"`],
  ])('overlaps in a file, %s', async (_name, secrets) => {
    const { tokenUrl, clients, close } = await runIssuer();
    onTestFinished(() => close(0));
    clients.replace(parseClients(`clients: [{ clientId: shop, ${secrets} }]`));
    expect(await accepted(tokenUrl, ['old', 'new', 'neither'])).toEqual(['old', 'new']);
  });
});
