/** How often the API is asked whether pods are served. */

import { expect, it } from 'vitest';
import { createServedPods } from '../../src/injector/watched-pods/pod-controller.ts';
import { type KubernetesApi, KubernetesApiError } from '../../src/platform/kubernetes/api.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';

function start() {
  const asked: string[] = [];
  const state = { fails: false };
  const api = {
    request: async (_: string, path: string) => {
      asked.push(path);
      if (state.fails) throw new KubernetesApiError('no', 503);
      return path.includes('webhook') ? { metadata: {}, webhooks: [{}] } : { metadata: {} };
    },
  } as unknown as KubernetesApi;
  const clock = new ManualClock();
  const { log, lines } = captureLog();
  const served = createServedPods(api, { configuration: 'injector', clock, log });
  const pass = async (namespaces: readonly string[]) => {
    const one = served();
    const verdicts = [];
    for (const namespace of namespaces) {
      verdicts.push(await one.of({ metadata: { name: 'p', namespace, uid: `p-${namespace}` } }));
    }
    one.end();
    return verdicts;
  };
  return { asked, state, clock, lines, pass };
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);

it('a pass reads the configuration once, and a namespace once however many pods it has', async () => {
  const { asked, pass } = start();
  expect(await pass(['a', 'a', 'b', 'a'])).toEqual(['served', 'served', 'served', 'served']);
  expect(asked).toHaveLength(3);
});

it('failures are remembered for fifteen seconds, end the pass, and are logged in one line', async () => {
  const { asked, state, clock, lines, pass } = start();
  state.fails = true;
  expect((await pass(names(10))).slice(0, 4)).toEqual(['unknown', 'unknown', 'unknown', 'unread']);
  expect(asked).toHaveLength(3);
  expect(lines).toHaveLength(1);
  expect(await pass(['n0', 'n1', 'n2'])).toEqual(['unknown', 'unknown', 'unknown']);
  expect(asked).toHaveLength(3);
  state.fails = false;
  await clock.advance(15_000);
  expect(await pass(['n0'])).toEqual(['served']);
});

it('two thousand namespaces are asked for fifty at a time, and all get their turn', async () => {
  const { asked, clock, pass } = start();
  const all = names(2000);
  for (let count = 0; count < 40; count++) {
    const before = asked.length;
    await pass(all);
    expect(asked.length - before).toBeLessThanOrEqual(51);
    await clock.advance(5000);
  }
  expect(await pass(all)).not.toContain('unread');
});
