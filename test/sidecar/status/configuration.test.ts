import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { redactedSettings } from '../../../src/sidecar/status/configuration.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';

const HIDDEN = '(set)';

it('nothing that a client is called, sends along or claims is shown', () => {
  const config = {
    credentials: [
      {
        name: 'crm',
        clientId: 'SECRET',
        scope: 'read',
        parameters: { client_secret: 'SECRET', resource: ['SECRET'] },
        grant: {
          type: 'jwt_bearer',
          kind: 'rfc7523',
          keyFile: 'key.pem',
          claims: { a: 'SECRET' },
          subject: 'SECRET',
        },
        tokenUrl: 'https://user:SECRET@sso.example.com/token?key=SECRET#SECRET',
      },
    ],
    routes: [{ name: 'api', inject: [{ into: 'placeholder', header: 'x', placeholder: 'SECRET' }] }],
    aSettingOfTomorrow: 'SECRET',
  };
  const shown = redactedSettings(config);
  expect(JSON.stringify(shown)).not.toContain('SECRET');
  expect(shown).toMatchObject({
    credentials: [
      {
        name: 'crm',
        clientId: HIDDEN,
        scope: 'read',
        parameters: HIDDEN,
        grant: { keyFile: 'key.pem', claims: HIDDEN },
        tokenUrl: 'https://sso.example.com/token?…',
      },
    ],
    aSettingOfTomorrow: HIDDEN,
  });
});

it('of a configuration as it is used, what was set and what was not', async () => {
  const path = await temporaryFile(
    'token-sidecar.json',
    JSON.stringify({
      credentials: [
        { name: 'crm', tokenUrl: 'https://sso.example.com/token', clientId: 'SECRET', dir: '/secret' },
      ],
      routes: [{ name: 'api', upstream: 'https://api.example.com/v2', credential: 'crm' }],
    }),
  );
  const shown = redactedSettings(await loadConfig({ config: { key: '--config', text: path } }));
  expect(JSON.stringify(shown)).not.toContain('SECRET');
  expect(shown).toMatchObject({
    logLevel: 'info',
    credentials: [{ directory: '/secret', requestTimeoutMs: 10_000 }],
    routes: [{ upstream: { host: 'api.example.com', basePath: '/v2' }, retryOn401: true }],
    limits: { maxInFlight: expect.any(Number) },
  });
});
