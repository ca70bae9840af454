import { expect, it } from 'vitest';
import { examineCredential } from '../../src/check/credential.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { examination, lines } from './examined.ts';

it.each([
  ['a failure of a credential that the pod waits for', {}, 'failure'],
  ['a warning of one that it does without', { required: false }, 'warning'],
] as const)('tells once of a file that is missing: %s', async (_, settings, verdict) => {
  const { directory } = await mountSecret({ client_id: 'shop' });
  const config = credentialConfig({ tokenUrl: 'https://sso.example.com/token', directory, ...settings });
  const { findings } = await examineCredential(config, examination({ isOffline: true }));
  expect(lines(findings)).toEqual([
    expect.stringMatching(new RegExp(`^${verdict} .*client_secret does not exist`)),
  ]);
});
