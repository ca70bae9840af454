/** What the injector knows of the cluster, and how long it goes by it. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { watchClusterVersion } from '../../src/injector/cluster/cluster-version.ts';
import { createSecretExistence } from '../../src/injector/cluster/secret-existence.ts';
import type { KubernetesApi } from '../../src/platform/kubernetes/api.ts';
import { readLines } from '../../src/platform/kubernetes/client.ts';
import { watchObject } from '../../src/platform/kubernetes/collection-watch.ts';
import { backoffMs, sleep } from '../../src/platform/time/async.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock, settle } from '../support/manual-clock.ts';
import { scriptedKubernetes } from './scripted-kubernetes.ts';

const LOOKUPS_AT_ONCE = 8;

describe('the version', () => {
  function follow(...answers: unknown[]) {
    const clock = new ManualClock();
    const { log, lines } = captureLog();
    const { api, asked } = scriptedKubernetes(() => (answers.length > 1 ? answers.shift() : answers[0]));
    const followed = watchClusterVersion(api, { clock, random: () => 0.5, log });
    onTestFinished(followed.close);
    return { ...followed, clock, lines, asked };
  }

  it.each([
    [
      { major: '1', minor: '34' },
      { major: 1, minor: 34 },
    ],
    [
      { major: '1', minor: '29+' },
      { major: 1, minor: 29 },
    ],
    [{ major: '1' }, undefined],
    [{ minor: '29' }, undefined],
    [{ major: 'one', minor: '29' }, undefined],
  ])('%j is %j', async (said, version) => {
    const { clock, current, lines } = follow(said);
    expect(current()).toEqual({});
    await clock.advance(0);
    expect(current()).toEqual(version === undefined ? {} : { version });
    expect(lines.join().includes('says no version')).toBe(version === undefined);
  });

  it('is asked every ten minutes, and the last valid answer stays', async () => {
    const { clock, current, asked } = follow({ major: '1', minor: '28' }, {}, { major: '1', minor: '29' });
    await clock.advance(599_999);
    expect(asked.map(({ path }) => path)).toEqual(['/version']);
    await clock.advance(1);
    expect([asked.length, current()]).toEqual([2, { version: { major: 1, minor: 28 } }]);
    await clock.advance(600_000);
    expect(current()).toEqual({ version: { major: 1, minor: 29 } });
  });

  it('is asked again soon when it cannot be read, later with each failure', async () => {
    const { clock, asked, lines, current } = follow(500, 500, 500, { major: '1', minor: '29' }, 500);
    await clock.advance(499);
    expect(asked).toHaveLength(1);
    await clock.advance(1 + 1000);
    expect(asked).toHaveLength(3);
    await clock.advance(2000);
    expect(current()).toEqual({ version: { major: 1, minor: 29 } });
    expect(lines.map((line) => JSON.parse(line).failures)).toEqual([1]);
    await clock.advance(600_000 + 500);
    expect(asked).toHaveLength(6);
  });

  it('is not asked after the end', async () => {
    const { clock, asked, close } = follow({ major: '1', minor: '29' });
    await clock.advance(0);
    close();
    await clock.advance(3_600_000);
    expect([asked.length, clock.pendingTimers]).toEqual([1, 0]);
  });
});

describe('waits', () => {
  it.each([
    [0, 500],
    [1, 500],
    [2, 1000],
    [5, 8000],
    [6, 15_000],
    [60, 15_000],
  ])('after %i failures for up to twice %i ms', (failures, ms) => {
    expect(backoffMs(failures, () => 0.5)).toBe(ms);
  });

  it('end with the signal, and leave no timer', async () => {
    const [clock, caller] = [new ManualClock(), new AbortController()];
    const waiting = sleep(clock, 1000, caller.signal);
    expect(clock.pendingTimers).toBe(1);
    caller.abort();
    await waiting;
    await sleep(clock, 1000, caller.signal);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('lines of a stream', () => {
  async function all(found: AsyncIterable<string>): Promise<string[]> {
    const kept: string[] = [];
    for await (const line of found) kept.push(line);
    return kept;
  }

  async function lines(...chunks: (string | Uint8Array)[]): Promise<string[]> {
    const bytes = chunks.map((chunk) =>
      typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk,
    );
    return await all(
      readLines(
        (async function* () {
          yield* bytes;
        })(),
      ),
    );
  }

  it('come whole, however they are cut', async () => {
    const [first, second] = [new Uint8Array([0xc3]), new Uint8Array([0xa9, 0x0a])];
    expect(await lines('a', 'b\nc\n\n', 'd\ne', 'f\n', first, second, 'half')).toEqual([
      'ab',
      'c',
      'd',
      'ef',
      'é',
    ]);
  });

  it('are none where there is no stream', async () => {
    expect(await all(readLines(null))).toEqual([]);
  });

  it('are four MiB at most', async () => {
    const half = 'x'.repeat(2 * 2 ** 20);
    expect((await lines(half, half, '\n'))[0]).toHaveLength(4 * 2 ** 20);
    await expect(lines(half, half, 'x')).rejects.toThrow(RangeError);
  });
});

describe('whether a Secret exists', () => {
  function ask(answer: (path: string) => unknown) {
    const clock = new ManualClock();
    const { log, lines } = captureLog();
    const { api, asked } = scriptedKubernetes(({ path }) => answer(path));
    return { exists: createSecretExistence(api, { clock, log }), clock, lines, asked };
  }

  it.each([
    ['there', true, {}, 30_000],
    ['not there', false, 404, 2000],
  ])('is known for a while when it is %s', async (_, there, answer, ms) => {
    const { exists, clock, asked, lines } = ask(() => answer);
    expect([await exists('team', 's/1'), await exists('team', 's/1')]).toEqual([there, there]);
    expect(asked.map(({ path }) => path)).toEqual(['/api/v1/namespaces/team/secrets/s%2F1']);
    await clock.advance(ms - 1);
    await exists('team', 's/1');
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    await exists('team', 's/1');
    expect(asked).toHaveLength(2);
    expect(lines).toEqual([]);
  });

  it('is unknown if the API fails, and is asked again', async () => {
    const { exists, asked, lines } = ask(() => 500);
    expect([await exists('team', 's'), await exists('team', 's')]).toEqual([undefined, undefined]);
    expect([asked.length, lines.length]).toEqual([2, 1]);
  });

  it('is remembered for a thousand Secrets; the one used longest ago is forgotten', async () => {
    const { exists, asked } = ask(() => ({}));
    for (let secret = 0; secret < 1000; secret++) await exists('team', String(secret));
    await exists('team', '0');
    expect(asked).toHaveLength(1000);
    await exists('team', 'one more');
    await exists('team', '0');
    expect(asked).toHaveLength(1001);
    await exists('team', '1');
    expect(asked).toHaveLength(1002);
    await exists('other', '1');
    expect(asked).toHaveLength(1003);
  });
});

describe('whether many Secrets exist', () => {
  function ask() {
    const clock = new ManualClock();
    const { log, lines } = captureLog();
    const open: (() => void)[] = [];
    const api: KubernetesApi = {
      ...scriptedKubernetes(() => ({})).api,
      request: <T>() => new Promise<T>((resolve) => open.push(() => resolve({} as T))),
    };
    return { exists: createSecretExistence(api, { clock, log }), open, clock, lines };
  }

  it('is asked for a few at once, and for the others in turn', async () => {
    const { exists, open } = ask();
    const all = Array.from({ length: 3 * LOOKUPS_AT_ONCE }, (_, n) => exists('team', String(n)));
    for (let round = 1; round <= 3; round++) {
      await settle();
      expect(open).toHaveLength(round * LOOKUPS_AT_ONCE);
      for (const answer of open.slice(-LOOKUPS_AT_ONCE)) answer();
    }
    expect(new Set(await Promise.all(all))).toEqual(new Set([true]));
  });

  it('is asked once for equal names', async () => {
    const { exists, open } = ask();
    const all = [exists('team', 's'), exists('team', 's')];
    await settle();
    expect(open).toHaveLength(1);
    open[0]?.();
    expect(await Promise.all(all)).toEqual([true, true]);
  });

  it('is unknown to a caller that has waited for a second', async () => {
    const { exists, open, clock, lines } = ask();
    const first = Array.from({ length: LOOKUPS_AT_ONCE }, (_, n) => exists('team', String(n)));
    const late = exists('team', 'late');
    await clock.advance(1000);
    expect(await late).toBeUndefined();
    expect(lines.join()).toContain('too many');
    for (const answer of open) answer();
    await Promise.all(first);
    const again = exists('team', 'late');
    await settle();
    open.at(-1)?.();
    expect([await again, open.length, clock.pendingTimers]).toEqual([true, LOOKUPS_AT_ONCE + 1, 0]);
  });
});

describe('a watched object', () => {
  it('is listed anew each time when the list says no version', async () => {
    const clock = new ManualClock();
    const { api, asked, streams } = scriptedKubernetes(() => ({ metadata: {}, items: [] }));
    const seen: unknown[] = [];
    const options = { clock, random: () => 0.5, log: captureLog().log };
    onTestFinished(watchObject(api, '/things', 'it', options, (object) => void seen.push(object)));
    await clock.advance(2000);
    streams[0]?.end();
    await clock.advance(0);
    expect(asked).toHaveLength(2);
    expect(asked[0]).toMatchObject({ path: '/things', query: { fieldSelector: 'metadata.name=it' } });
    expect(seen).toEqual([undefined, undefined]);
  });

  it('is reported by its own events only, and watched from the last version', async () => {
    const clock = new ManualClock();
    const { api, asked, streams } = scriptedKubernetes(() => ({
      metadata: { resourceVersion: '1' },
      items: [],
    }));
    const seen: unknown[] = [];
    const options = { clock, random: () => 0.5, log: captureLog().log };
    onTestFinished(watchObject(api, '/things', 'it', options, (object) => void seen.push(object)));
    await clock.advance(2000);
    const [stream] = streams;
    const it = { metadata: { name: 'it', resourceVersion: '2' } };
    const unversioned = { metadata: { name: 'it' } };
    stream?.send({ type: 'ADDED', object: it });
    stream?.send({ type: 'ADDED', object: { metadata: { name: 'other', resourceVersion: '3' } } });
    stream?.send({ type: 'BOOKMARK', object: { metadata: { name: 'it', resourceVersion: '9' } } });
    stream?.send({ type: 'MODIFIED', object: unversioned });
    stream?.send({ type: 'DELETED', object: unversioned });
    expect(seen).toEqual([undefined, it, unversioned, undefined]);
    stream?.end();
    await clock.advance(0);
    expect(streams.map(({ query }) => query['resourceVersion'])).toEqual(['1', '9']);
    expect(asked).toHaveLength(1);
  });
});
