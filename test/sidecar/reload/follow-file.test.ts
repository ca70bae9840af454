import { join } from 'node:path';
import { Registry } from '@prometheus-io/client';
import { expect, it, onTestFinished } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { SidecarError } from '../../../src/platform/errors.ts';
import {
  followConfigFile,
  PAUSE_MS,
  type Reconfigurable,
  type ReconfigureOptions,
} from '../../../src/sidecar/reload/follow-file.ts';
import { mountSecret } from '../../support/kubelet-secret.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const OVERDUE_MS = 30_000;

const POLL_MS = 30_000;

const textOf = (limit: number): string =>
  JSON.stringify({
    limits: { inFlight: limit },
    credentials: [{ name: 'default', tokenUrl: 'https://sso.test/token', dir: '/secret' }],
    routes: [{ name: 'api', upstream: 'https://api.test', credential: 'default' }],
  });

/** A file that says `limits.inFlight: 1`, and a target that does as `reconfigure` says. */
async function follow(reconfigure?: Reconfigurable['reconfigure']) {
  const clock = new ManualClock();
  const registry = new Registry();
  const { log, lines } = captureLog();
  const volume = await mountSecret({ 'token-sidecar.yaml': textOf(1) });
  const path = join(volume.directory, 'token-sidecar.yaml');
  let said = textOf(1);
  let config = await loadConfig({ config: { key: '--config', text: path } }, [], said);
  const taken: number[] = [];
  const file = followConfigFile({
    path,
    text: said,
    load: () => loadConfig({ config: { key: '--config', text: path } }, [], said),
    target: {
      config: () => config,
      async reconfigure(next: Config, options: ReconfigureOptions) {
        taken.push(next.limits.maxInFlight);
        const done = (await reconfigure?.(next, options)) ?? true;
        if (done) config = next;
        return done;
      },
    },
    registry,
    clock,
    log,
  });
  onTestFinished(() => file.close());
  return {
    file,
    clock,
    lines,
    taken,
    /** Has it read this. */
    reload(text: string | number) {
      said = typeof text === 'number' ? textOf(text) : text;
      file.reload();
    },
    async metric(series: string): Promise<number | undefined> {
      const line = (await registry.metrics())
        .split('\n')
        .find((one) => one.startsWith(`token_sidecar_config_${series} `));
      return line === undefined ? undefined : Number(line.split(' ').at(-1));
    },
  };
}

it('takes what the file says, one at a time and no more often than once a second, the last one last', async () => {
  const { taken, reload, clock, file } = await follow();
  reload(2);
  await clock.advance(0);
  for (let limit = 3; limit < 50; limit++) reload(limit);
  await clock.advance(PAUSE_MS - 1);
  expect(taken).toEqual([2]);
  await clock.advance(1);
  expect(taken).toEqual([2, 49]);
  expect(file.status()).toMatchObject({ generation: 3, standing: { state: 'current' } });
});

it('says when tokens have been waited for too long, once, and takes effect when they come all the same', async () => {
  const granted = Promise.withResolvers<boolean>();
  const { reload, clock, file, lines, metric } = await follow((_, { onWait }) => {
    onWait({ required: () => ['credential crm: the provider is away'], optional: () => [] });
    return granted.promise;
  });
  reload(2);
  await clock.advance(OVERDUE_MS - 1);
  expect(file.status().standing).toMatchObject({ state: 'waiting', overdue: false });
  expect(await metric('last_reload_successful')).toBe(1);
  await clock.advance(10 * OVERDUE_MS);
  expect(file.status().standing).toMatchObject({ state: 'waiting', overdue: true });
  expect(await metric('last_reload_successful')).toBe(0);
  expect(await metric('reload_total{result="token_unavailable"}')).toBe(1);
  const said = lines.filter((line) => line.includes('waits for tokens'));
  expect(said.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'error', generation: 1, missing: ['credential crm: the provider is away'] },
  ]);

  granted.resolve(true);
  await clock.advance(0);
  expect(file.status()).toMatchObject({ generation: 2, standing: { state: 'current' } });
  expect(await metric('last_reload_successful')).toBe(1);
});

it('gives up what waits for tokens where the file says something else', async () => {
  let waits = true;
  const { reload, clock, file, taken } = await follow((_, { abandoned, onWait }) => {
    if (!waits) return Promise.resolve(true);
    onWait({ required: () => [], optional: () => [] });
    return new Promise((resolve) => abandoned.addEventListener('abort', () => resolve(false)));
  });
  reload(2);
  await clock.advance(0);
  waits = false;
  reload(3);
  await clock.advance(PAUSE_MS);
  expect(taken).toEqual([2, 3]);
  expect(file.status()).toMatchObject({ generation: 2, standing: { state: 'current' } });
});

it('and where it says again what is in use', async () => {
  const { reload, clock, file, metric } = await follow((_, { abandoned, onWait }) => {
    onWait({ required: () => [], optional: () => [] });
    return new Promise((resolve) => abandoned.addEventListener('abort', () => resolve(false)));
  });
  reload(2);
  await clock.advance(0);
  reload(1);
  await clock.advance(PAUSE_MS);
  expect(file.status()).toMatchObject({ generation: 1, standing: { state: 'current' } });
  expect(await metric('reload_total{result="unchanged"}')).toBe(1);
});

it('a wait that begins anew with every change is overdue as one that does not', async () => {
  const waits: Reconfigurable['reconfigure'] = async (_, { abandoned, onWait }) => {
    onWait({ required: () => ['credential crm: the provider is away'], optional: () => [] });
    await new Promise((resolve) => abandoned.addEventListener('abort', resolve));
    return false;
  };
  const { reload, clock, lines, metric } = await follow(waits);
  for (let limit = 2; limit < 8; limit++) {
    reload(limit);
    await clock.advance(OVERDUE_MS / 5);
  }
  expect(lines.filter((line) => line.includes('waits for tokens'))).toHaveLength(1);
  expect(await metric('last_reload_successful')).toBe(0);
});

it('what was refused is looked at again, and told once, until it can be used', async () => {
  let comes = false;
  const { reload, clock, lines, taken, file, metric } = await follow(async () => {
    if (!comes) throw new SidecarError('configuration', 'tls: /ca/new.pem cannot be read (ENOENT)');
    return true;
  });
  reload(2);
  await clock.advance(3 * POLL_MS);
  expect(taken.length).toBeGreaterThan(2);
  expect(lines.filter((line) => line.includes('cannot be used'))).toHaveLength(1);
  expect(await metric('reload_total{result="invalid"}')).toBe(1);

  reload(2);
  await clock.advance(PAUSE_MS);
  // Whoever asks is told.
  expect(lines.filter((line) => line.includes('cannot be used'))).toHaveLength(2);

  comes = true;
  await clock.advance(POLL_MS);
  expect(file.status()).toMatchObject({ generation: 2, standing: { state: 'current' } });
});

it('an error that nobody foresaw changes nothing, and is logged with its stack', async () => {
  let fails = true;
  const { reload, clock, file, lines } = await follow(() => {
    if (fails) throw new TypeError('unforeseen');
    return Promise.resolve(true);
  });
  reload(2);
  await clock.advance(0);
  expect(file.status()).toMatchObject({
    generation: 1,
    standing: { state: 'refused', result: 'invalid', report: 'an unexpected error, which the log has' },
  });
  expect(lines.join('')).toContain('unforeseen');
  fails = false;
  reload(2);
  await clock.advance(PAUSE_MS);
  expect(file.status()).toMatchObject({ generation: 2, standing: { state: 'current' } });
});

it('is over when it is closed: what waits is given up, and no timer is left', async () => {
  const gaveUp = Promise.withResolvers<void>();
  const { reload, clock, file, taken } = await follow((_, { abandoned, onWait }) => {
    onWait({ required: () => [], optional: () => [] });
    abandoned.addEventListener('abort', () => gaveUp.resolve());
    return gaveUp.promise.then(() => false);
  });
  reload(2);
  await clock.advance(0);
  file.close();
  await gaveUp.promise;
  reload(3);
  await clock.advance(2 * OVERDUE_MS);
  expect(taken).toEqual([2]);
  expect(clock.pendingTimers).toBe(0);
});
