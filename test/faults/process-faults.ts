/** What only real processes and a real network can show, in real time: tokens live for seconds here. */

import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { ChildSidecar, REQUEST_MS, WAIT_MS } from './child-sidecar.ts';
import { MAX_GRANTS_PER_MINUTE, mostInAnyMinute } from './designed-grants.ts';
import { describeAnswers, record, seconds } from './matrix.ts';
import { FaultProvider, grantTokenAndHangUp } from './provider.ts';
import { FaultUpstream } from './upstream.ts';

const LIFETIME_SECONDS = 4;
const LEEWAY_MS = 100;
const APP_INTERVAL_MS = 100;

/** Renewals of tokens of four seconds, a second apart at the least (`minInterval`), on top of failures. */
const MAX_RENEWALS = 60;

/** For a slow machine: what a process may take to be scheduled and to answer. */
const SLACK_MS = 1500;

const nowMs = () => performance.now();

function startProvider(): Promise<FaultProvider> {
  return FaultProvider.start({ nowMs, lifetimeSeconds: LIFETIME_SECONDS, leewayMs: LEEWAY_MS });
}

async function startUpstream(endOf: (token: string) => number | undefined): Promise<FaultUpstream> {
  const upstream = await FaultUpstream.start({ nowMs, endOf });
  onTestFinished(() => upstream.close());
  return upstream;
}

function after(ms: number): () => boolean {
  const endMs = nowMs() + ms;
  return () => nowMs() >= endMs;
}

/** Stopped until its token is long past, with a request waiting in its socket. */
export async function runPausedProcess(): Promise<void> {
  const provider = await startProvider();
  onTestFinished(() => provider.close());
  const upstream = await startUpstream((token) => provider.endOf(token));
  const sidecar = await ChildSidecar.start({ tokenUrl: provider.url, upstreamUrl: upstream.url });
  const { app, command } = sidecar;
  await sidecar.live(APP_INTERVAL_MS, after(500));
  expect(app.answers.every(({ status }) => status === 200)).toBe(true);

  command.process.kill('SIGSTOP');
  const waiting = app.send();
  const grantsBefore = provider.requestsAtMs.length;
  await new Promise((resolve) => setTimeout(resolve, (LIFETIME_SECONDS + 2) * 1000));
  expect(provider.requestsAtMs).toHaveLength(grantsBefore);
  const resumedAtMs = nowMs();
  command.process.kill('SIGCONT');
  expect((await waiting).status).toBe(200);
  const recoveredMs = nowMs() - resumedAtMs;
  expect(recoveredMs).toBeLessThanOrEqual(WAIT_MS + SLACK_MS);

  await sidecar.live(APP_INTERVAL_MS, after(LIFETIME_SECONDS * 1000));
  expect(app.answers.every(({ status }) => status === 200)).toBe(true);
  expect(upstream.violations).toEqual([]);
  const grants = provider.requestsAtMs.length;
  expect((await sidecar.metrics()).sum('token_refresh_total', { result: 'success' })).toBe(grants);
  expect(mostInAnyMinute(provider.requestsAtMs)).toBeLessThanOrEqual(MAX_RENEWALS);
  expect(command.stderr).toBe('');
  expect(await sidecar.terminate()).toBe(0);
  record({
    row: 'process paused (SIGSTOP) past expiry',
    app: describeAnswers(app.answers),
    grants: `${grants}, none while paused`,
    metrics: `success ${grants}`,
    recovery: seconds(recoveredMs),
  });
}

/** The provider's process stops and its backlog is full: no connection, no refusal, nothing. */
export async function runBlackHole(): Promise<void> {
  const provider = spawn(
    process.execPath,
    [join(import.meta.dirname, 'frozen-provider.ts'), String(LIFETIME_SECONDS), String(LEEWAY_MS)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  onTestFinished(() => void provider.kill('SIGKILL'));
  const port = Number(await new Promise<Buffer>((resolve) => provider.stdout.once('data', resolve)));
  // The token speaks wall time, the upstream monotonic.
  const upstream = await startUpstream(
    (token) => Number(token.slice('ends.'.length)) - performance.timeOrigin,
  );
  const tokenUrl = `http://127.0.0.1:${port}/token`;

  await runNetworkFault({
    name: 'black hole (SYN dropped: stopped process, full backlog)',
    detail: /no whole answer within 1 s|UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT/,
    sidecar: await ChildSidecar.start({ tokenUrl, upstreamUrl: upstream.url }),
    upstream,
    async breaks() {
      provider.kill('SIGSTOP');
      const fillers = Array.from({ length: 4 }, () => connect(port, '127.0.0.1').on('error', () => {}));
      onTestFinished(() => {
        for (const filler of fillers) filler.destroy();
      });
      const probe = connect(port, '127.0.0.1').on('error', () => {});
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect(probe.connecting).toBe(true);
      probe.destroy();
      for (const filler of fillers) filler.destroy();
    },
    mends() {
      provider.kill('SIGCONT');
    },
  });
}

/** Why `unshare` cannot give the sidecar name resolution of its own here; undefined when it can. */
export async function whyNoNamespaces(): Promise<string | undefined> {
  const trial = spawn('unshare', ['-rm', 'true'], { stdio: 'ignore' });
  return await new Promise((resolve) => {
    trial.once('error', ({ message }) => resolve(message));
    trial.once('close', (code) => resolve(code === 0 ? undefined : `unshare -rm: exit ${code}`));
  });
}

/** The provider's name is in a hosts file of the sidecar's own, then it is not; no name server answers. */
export async function runDnsFailure(): Promise<void> {
  const provider = await startProvider();
  onTestFinished(() => provider.close());
  provider.behaviour = grantTokenAndHangUp;
  const upstream = await startUpstream((token) => provider.endOf(token));
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-faults-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const hosts = join(directory, 'hosts');
  const resolver = join(directory, 'resolv.conf');
  await writeFile(hosts, '127.0.0.1 provider.test\n');
  await writeFile(resolver, 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n');
  const mounts = 'mount --bind "$1" /etc/hosts && mount --bind "$2" /etc/resolv.conf && shift 2 && exec "$@"';
  const through = ['unshare', '-rm', 'sh', '-c', mounts, 'sh', hosts, resolver];
  const tokenUrl = provider.url.replace('127.0.0.1', 'provider.test');

  await runNetworkFault({
    name: 'DNS failure',
    detail: /EAI_AGAIN|ENOTFOUND/,
    sidecar: await ChildSidecar.start({ tokenUrl, upstreamUrl: upstream.url, through }),
    upstream,
    breaks: () => writeFile(hosts, '\n'),
    mends: () => writeFile(hosts, '127.0.0.1 provider.test\n'),
  });
}

interface NetworkFault {
  readonly name: string;
  readonly detail: RegExp;
  readonly sidecar: ChildSidecar;
  readonly upstream: FaultUpstream;
  readonly breaks: () => Promise<void>;
  readonly mends: () => Promise<void> | void;
}

async function runNetworkFault(fault: NetworkFault): Promise<void> {
  const { sidecar, upstream } = fault;
  const { app } = sidecar;
  const failures = () => sidecar.grants().filter(({ detail }) => detail !== undefined);
  await sidecar.live(APP_INTERVAL_MS, after(500));
  expect(app.answers.every(({ status }) => status === 200)).toBe(true);
  await fault.breaks();
  // Four failures, and the token has ended.
  await sidecar.live(APP_INTERVAL_MS, () => failures().length >= 4 && app.answers.at(-1)?.status === 503);
  for (const { detail } of failures()) expect(detail).toMatch(fault.detail);
  const broken = await sidecar.metrics();
  expect(broken.sum('token_refresh_total', { result: 'unavailable' })).toBe(failures().length);
  expect(broken.sum('token_refresh_consecutive_failures')).toBe(failures().length);
  expect(broken.sum('token_ready')).toBe(0);

  // The bound of the step that is being waited for: it doubles from 1 s, and a grant in flight may fail once more.
  const stepMs = 1000 * 2 ** failures().length;
  const curedAtMs = nowMs();
  await fault.mends();
  await sidecar.live(APP_INTERVAL_MS, () => app.answers.at(-1)?.status === 200);
  const recoveredMs = nowMs() - curedAtMs;
  expect(recoveredMs).toBeLessThanOrEqual(stepMs + REQUEST_MS + SLACK_MS);

  const failed = failures().length;
  await sidecar.live(APP_INTERVAL_MS, after(2000));
  expect(failures()).toHaveLength(failed);
  for (const { status, tookMs } of app.answers) {
    expect([200, 503]).toContain(status);
    expect(tookMs).toBeLessThanOrEqual(WAIT_MS + SLACK_MS);
  }
  expect(upstream.violations).toEqual([]);
  const atMs = failures().map((grant) => grant.atMs);
  expect(mostInAnyMinute(atMs)).toBeLessThanOrEqual(MAX_GRANTS_PER_MINUTE.failing);
  expect(sidecar.command.stderr).toBe('');
  expect(await sidecar.terminate()).toBe(0);
  record({
    row: fault.name,
    app: describeAnswers(app.answers),
    grants: `${failed} failed, ≤ ${MAX_GRANTS_PER_MINUTE.failing}/min`,
    metrics: `unavailable ${failed}, ready 0 → 1`,
    recovery: `${seconds(recoveredMs)} of ${seconds(stepMs)}`,
  });
}
