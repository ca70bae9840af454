import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, onTestFinished } from 'vitest';
import { makeCertificates } from '../faults/certificates.ts';
import { runRevokedTwice } from '../faults/upstream-faults.ts';

it('tokens that are revoked twice within ten seconds fail no request', () => runRevokedTwice(1));

it('tokens that are revoked twice within ten seconds fail no request over TLS', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-revoked-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await runRevokedTwice(1, await makeCertificates(directory));
});
