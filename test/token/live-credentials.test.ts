import { generateKeyPairSync } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { CredentialConfig } from '../../src/config/config.ts';
import type { CredentialsReading } from '../../src/token/client-credentials.ts';
import { openLiveCredentials } from '../../src/token/live-credentials.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';

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
  const announced: CredentialsReading[] = [];
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

it('a new signing key is announced, half of one as malformed, and the old one restored is the same', async () => {
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

it('the same signing key written differently is no change', async () => {
  const one = pemKey();
  const { live, announced, mounted, update } = await follow(KEY, { private_key: one });
  const first = live.current();
  await mounted.update({ private_key: `Bag Attributes\n${one}` });
  await update({ private_key: pemKey() });
  expect(announced).toHaveLength(1);
  expect(announced[0]).not.toEqual(first);
});

it('a renewed certificate is announced once both files fit each other', async () => {
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

it('a service-account token that is replaced is no change of the credentials; one that is gone is', async () => {
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
