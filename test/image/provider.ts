import { rm } from 'node:fs/promises';
import { vi } from 'vitest';
import type { KubeletSecret } from '../../src/platform/mounted/secret-layout.ts';
import type { Container, Pod } from './pod.ts';
import { runProgram } from './programs.ts';
import { makeSecretVolume } from './secret-volume.ts';

/** An issuer that knows one client, `shop`, and an API that takes only its tokens, both of them in the pod. */
export interface Provider {
  readonly issuer: Container;
  /** Changes the client's secret; resolves once the new one is accepted, and the old one therefore is not. */
  changeSecret(clientSecret: string): Promise<void>;
  remove(): Promise<void>;
}

export const AUTH_URL = 'http://127.0.0.1:15090';
export const API_URL = 'http://127.0.0.1:15092';

export async function startProvider(pod: Pod, clientSecret: string): Promise<Provider> {
  const registration = (secret: string) => ({
    client_id: 'shop',
    client_secret: secret,
    audience: 'api',
    scope: 'read',
  });
  const registered: KubeletSecret = await makeSecretVolume(registration(clientSecret));
  const issuer = await pod.run('issuer', {
    args: ['issuer', '--clients-dir=/etc/clients', `--auth-url=${AUTH_URL}`],
    mounts: { '/etc/clients/shop': registered.directory },
  });
  await runProgram(pod, 'api');
  return {
    issuer,
    async changeSecret(next) {
      await registered.update(registration(next));
      await vi.waitFor(() => assertAccepted(pod, next), { timeout: 60_000, interval: 100 });
    },
    remove: () => rm(registered.directory, { recursive: true }),
  };
}

async function assertAccepted(pod: Pod, clientSecret: string): Promise<void> {
  const basic = Buffer.from(`shop:${clientSecret}`).toString('base64');
  const response = await fetch(`http://${pod.address}:15090/realms/dx/protocol/openid-connect/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  });
  if (response.status !== 200) throw new Error(`the token endpoint answers ${response.status}`);
}
