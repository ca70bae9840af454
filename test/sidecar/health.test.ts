import { expect, it } from 'vitest';
import { sidecarHealth } from '../../src/sidecar/health.ts';
import type { OpenCredential } from '../../src/sidecar/token-sources.ts';

/** A credential that is required, and has no token before `grant`. */
function credential() {
  const granted = Promise.withResolvers<void>();
  let obtained = false;
  let waiting = 0;
  const source = {
    snapshot: () => ({ obtainedFirstToken: obtained }),
    firstToken: {
      // biome-ignore lint/suspicious/noThenProperty: who waits is counted
      then(resolve: () => void) {
        waiting += 1;
        return granted.promise.then(resolve);
      },
    },
  };
  return {
    open: { config: {}, source } as unknown as OpenCredential,
    waiting: () => waiting,
    grant() {
      obtained = true;
      granted.resolve();
    },
  };
}

function health(...first: readonly OpenCredential[]) {
  let inUse = first;
  const { look, ready } = sidecarHealth({
    inUse: () => inUse,
    listening: () => true,
    draining: () => false,
    frontendMissing: () => [],
    nowMs: () => 0,
  });
  let isReady = false;
  void ready.then(() => {
    isReady = true;
  });
  look();
  return {
    isReady: async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return isReady;
    },
    use(...next: readonly OpenCredential[]) {
      inUse = next;
      look();
    },
  };
}

it('waits for the last of the credentials in use', async () => {
  const [one, other] = [credential(), credential()];
  const { isReady } = health(one.open, other.open);
  one.grant();
  expect(await isReady()).toBe(false);
  other.grant();
  expect(await isReady()).toBe(true);
});

it('waits once for each, however often the configuration changes meanwhile', async () => {
  const { open, waiting, grant } = credential();
  const { use, isReady } = health(open);
  for (let change = 0; change < 100; change++) use(open);
  expect(waiting()).toBe(1);
  grant();
  expect(await isReady()).toBe(true);
});

it('waits no longer for one that is not in use any more, and for one that has come', async () => {
  const [stays, goes, comes] = [credential(), credential(), credential()];
  const { use, isReady } = health(stays.open, goes.open);
  stays.grant();
  use(stays.open, comes.open);
  goes.grant();
  expect(await isReady()).toBe(false);
  use(stays.open);
  expect(await isReady()).toBe(true);
});
