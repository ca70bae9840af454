import { generateKeyPairSync } from 'node:crypto';
import { watch } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import type { CredentialConfig } from '../../src/config/config.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { type CredentialsResult, openLiveCredentials } from '../../src/token/credentials.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { ManualClock } from '../support/manual-clock.ts';

async function follow(clientAuth: CredentialConfig['clientAuth'], files: Record<string, string>) {
  const mounted = await mountSecret(files);
  const config = credentialConfig({
    tokenUrl: 'https://sso/token',
    directory: mounted.directory,
    clientId: 'shop',
    clientAuth,
  });
  const live = await openLiveCredentials(config, { clock: systemClock, pollMs: 50 });
  onTestFinished(() => live.close());
  const announced: CredentialsResult[] = [];
  const waiting: (() => void)[] = [];
  live.onChange((reading) => {
    announced.push(reading);
    for (const wake of waiting.splice(0)) wake();
  });
  return {
    live,
    announced,
    async update(next: Record<string, string>) {
      const wake = new Promise<void>((resolve) => waiting.push(resolve));
      await mounted.update(next);
      return wake;
    },
    mounted,
  };
}

const pemKey = () =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const KEY = { method: 'private_key_jwt', keyFile: 'private_key', audience: 'https://sso' } as const;

it('a new signing key is reported, a half-written one as malformed, and the old one restored as unchanged', async () => {
  const [one, two] = [pemKey(), pemKey()];
  const { live, announced, update } = await follow(KEY, { private_key: one });
  const first = live.current();
  await update({ private_key: two.slice(0, 60) });
  await update({ private_key: one });
  await update({ private_key: two });
  expect(announced.map(({ state }) => state)).toEqual(['malformed', 'loaded', 'loaded']);
  expect(announced[1]).toBe(first);
  expect(announced[2]).not.toEqual(first);
});

it('the same signing key in another format is no change', async () => {
  const one = pemKey();
  const { live, announced, mounted, update } = await follow(KEY, { private_key: one });
  const first = live.current();
  await mounted.update({ private_key: `Bag Attributes\n${one}` });
  await update({ private_key: pemKey() });
  expect(announced).toHaveLength(1);
  expect(announced[0]).not.toEqual(first);
});

it('a renewed certificate is reported once certificate and key match', async () => {
  const authority = createCertificateAuthority('Test CA');
  const files = () => {
    const { cert, key } = authority.issue('shop');
    return { 'tls.crt': cert, 'tls.key': key };
  };
  const { announced, update } = await follow({ method: 'tls_client_auth' }, files());
  const renewed = files();
  await update({ ...files(), 'tls.crt': renewed['tls.crt'] });
  await update(renewed);
  expect(announced).toMatchObject([
    { state: 'malformed' },
    { state: 'loaded', credentials: { certificate: renewed['tls.crt'].trimEnd() } },
  ]);
});

it('a replaced service account token is reported as the same credentials rewritten', async () => {
  const { live, announced, mounted } = await follow(
    { method: 'kubernetes_jwt', tokenFile: 'token' },
    { token: 'a.b.c' },
  );
  const rewritten = new Promise<void>((resolve) => live.onRewrite(resolve));
  await mounted.update({ token: 'd.e.f' });
  await rewritten;
  expect(announced).toEqual([]);
});

it('a replaced service account token is no change of the credentials, a missing one is', async () => {
  const { live, announced, mounted, update } = await follow(
    { method: 'kubernetes_jwt', tokenFile: 'token' },
    { token: 'a.b.c' },
  );
  const first = live.current();
  await mounted.update({ token: 'd.e.f' });
  await update({ token: '' });
  await update({ token: 'g.h.i' });
  expect(announced.map(({ state }) => state)).toEqual(['empty', 'loaded']);
  expect(live.current()).toBe(first);
});

it('a Secret that stays unusable in the same way is not reported again', async () => {
  const { live, announced, mounted, update } = await follow(KEY, { private_key: 'no key' });
  let rewritten = 0;
  live.onRewrite(() => rewritten++);
  await mounted.update({ private_key: 'no key either' });
  await live.refresh();
  expect(announced).toEqual([]);
  await update({ private_key: pemKey() });
  expect(announced.map(({ state }) => state)).toEqual(['loaded']);
  expect(rewritten).toBe(0);
});

/** With a clock that stands still: changes are found by looking alone. */
async function openStill(files: Record<string, string>) {
  const mounted = await mountSecret(files);
  const config = credentialConfig({
    tokenUrl: 'https://sso/token',
    directory: mounted.directory,
    clientId: 'shop',
    clientAuth: { method: 'kubernetes_jwt', tokenFile: 'token' },
  });
  const clock = new ManualClock();
  let failWatch = false;
  const live = await openLiveCredentials(config, {
    clock,
    pollMs: 30_000,
    watch: ((...args: Parameters<typeof watch>) => {
      if (failWatch) throw Object.assign(new Error('no watch'), { code: 'EMFILE' });
      return watch(...args);
    }) as typeof watch,
  });
  onTestFinished(() => live.close());
  const told: string[] = [];
  const ends = [
    live.onChange(({ state }) => told.push(state)),
    live.onRewrite(() => told.push('rewritten')),
    live.onWatchMode(({ by }) => told.push(by)),
  ];
  return {
    live,
    clock,
    told,
    end: () => {
      for (const end of ends) end();
    },
    /** A change of each kind that can be told of. */
    async changeAll() {
      await mounted.update({ token: 'd.e.f' });
      await live.refresh();
      await mounted.update({ token: '' });
      await live.refresh();
      await mounted.update({ token: 'a.b.c' });
      await live.refresh();
      failWatch = !failWatch;
      await clock.advance(30_000);
    },
  };
}

it('each listener is told of its own credentials until it unsubscribes', async () => {
  const { live, told, end, changeAll } = await openStill({ token: 'a.b.c' });
  expect(live.watchMode()).toEqual({ by: 'notification' });
  await changeAll();
  expect(told).toEqual(['rewritten', 'empty', 'loaded', 'polling']);
  expect(live.watchMode()).toEqual({ by: 'polling', code: 'EMFILE' });
  end();
  await changeAll();
  expect(told).toHaveLength(4);
  expect(live.watchMode()).toEqual({ by: 'notification' });
});

it('closing stops watching the Secret, with no timer and no further report', async () => {
  const { live, clock, told, changeAll } = await openStill({ token: 'a.b.c' });
  live.close();
  expect(clock.pendingTimers).toBe(0);
  await changeAll();
  expect(told).toEqual([]);
});
