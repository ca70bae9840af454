import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { type Certificates, makeCertificates } from './certificates.ts';
import { CLOCK_FAULTS, runClockFault } from './clock-faults.ts';
import { runAdminCrowd } from './crowds.ts';
import { EXCHANGE_FAULTS, runExchangeFault } from './exchange-faults.ts';
import { FAULTS_OF_GRANTS, GRANT_KINDS } from './grant-kinds.ts';
import { printMatrix } from './matrix.ts';
import { runBlackHole, runDnsFailure, runPausedProcess, whyNoNamespaces } from './process-faults.ts';
import { PROVIDER_FAULTS, runProviderFault } from './provider-faults.ts';
import {
  runProviderBehind,
  runSecretAbsentAtFirst,
  runSecretDirectoryMadeAnew,
  runSecretFault,
  runSecretFlapping,
  runSecretHalfWritten,
  SECRET_FAULTS,
} from './secret-faults.ts';
import { runShortLivedTokens, runTokenOddity, TOKEN_ODDITIES } from './token-oddities.ts';
import { runRevokedTwice, runUpstreamRefusing } from './upstream-faults.ts';

let directory: string;
let certificates: Certificates;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'token-sidecar-faults-'));
  certificates = await makeCertificates(directory);
});

afterAll(async () => {
  printMatrix();
  await rm(directory, { recursive: true });
});

let rows = 0;

/** A row in virtual time, with jitter of its own that is the same in every run. */
function row(name: string, run: (seed: number) => Promise<void>): void {
  const seed = ++rows;
  it(name, () => run(seed));
}

// An unhandled rejection or exception in any row, the sidecar's among them, fails the whole run: vitest sees to it.

describe('the provider', () => {
  for (const fault of PROVIDER_FAULTS) row(fault.name, (seed) => runProviderFault(fault, certificates, seed));
});

describe('the token', () => {
  for (const oddity of TOKEN_ODDITIES) row(oddity.name, (seed) => runTokenOddity(oddity, seed));
  for (const lifetime of [2, 3, 4]) {
    row(`lives ${lifetime} s, in whole seconds`, (seed) => runShortLivedTokens(lifetime, seed));
  }
});

describe('the clock', () => {
  for (const fault of CLOCK_FAULTS) row(fault.name, (seed) => runClockFault(fault, seed));
});

describe('the Secret', () => {
  for (const fault of SECRET_FAULTS) row(fault.name, (seed) => runSecretFault(fault, seed));
  row('Secret absent at the start', runSecretAbsentAtFirst);
  row('Secret half-written', runSecretHalfWritten);
  row('Secret replaced before the provider takes it', runProviderBehind);
  row('Secret directory removed and made again', runSecretDirectoryMadeAnew);
  row('Secret replaced ten times a second', runSecretFlapping);
});

describe('the upstream', () => {
  row('answers 401 to every token', runUpstreamRefusing);
  row('revokes twice within ten seconds', runRevokedTwice);
  row('revokes twice within ten seconds, over TLS', (seed) => runRevokedTwice(seed, certificates));
});

describe.each(GRANT_KINDS)('the provider of a grant by $name', (grant) => {
  for (const fault of FAULTS_OF_GRANTS)
    row(fault.name, (seed) => runProviderFault(fault, certificates, seed, grant));
});

describe('the provider that exchanges the token of each request', () => {
  for (const fault of EXCHANGE_FAULTS) row(fault.name, (seed) => runExchangeFault(fault, certificates, seed));
});

describe('processes and the network', () => {
  it('paused past expiry and resumed', runPausedProcess);
  it('black hole', runBlackHole);
  it('five thousand connections to the admin listener', runAdminCrowd);
  it('DNS failure', async ({ skip }) => {
    const why = await whyNoNamespaces();
    // Where nothing may be left out the row fails by itself.
    if (why !== undefined && process.env['CI'] === undefined) skip(why);
    await runDnsFailure();
  });
});
