import { describe, expect, it } from 'vitest';
import { ASKING } from '../../injector/defaults.ts';
import { reviewOf } from '../../injector/review.ts';
import { apiServer, mountCertificate, runInjector } from './running-injector.ts';

const POD = { metadata: { name: 'shop', annotations: ASKING }, spec: { containers: [{ name: 'app' }] } };

async function start(args: readonly string[] = []) {
  const mounted = await mountCertificate();
  const ca = await mounted.issue();
  const running = runInjector([...mounted.settings, ...args]);
  const port = await running.port();
  return { mounted, running, port, ca, client: apiServer(port, ca) };
}

describe('token-sidecar injector, by files', () => {
  it('answers reviews over TLS, by its defaults, and ends with 0', async () => {
    const { client, running } = await start(['--default-scope', 'read', '--default-native-sidecar', 'false']);
    const { status, text } = await client.call('/mutate', reviewOf(POD, { uid: 'one' }));
    const { response } = JSON.parse(text);
    const patch = Buffer.from(response.patch, 'base64').toString();

    expect([status, response.uid, response.allowed]).toEqual([200, 'one', true]);
    expect(patch).toContain('"/spec/containers/-"');
    expect(patch).toContain('{"name":"TOKEN_SIDECAR_SCOPE","value":"read"}');
    expect((await running.probe('/metrics')).text).toContain(
      'token_sidecar_injector_admissions_total{result="injected",reason="classic"} 1',
    );
    running.stop();
    expect(await running.status).toBe(0);
  });

  it('refuses a pod that has not what it asks for, at /validate', async () => {
    const { client } = await start();
    const { text } = await client.call('/validate', reviewOf(POD));
    expect(JSON.parse(text).response).toMatchObject({ allowed: false, status: { code: 403 } });
  });

  it('is ready once it has its certificate, and says when that ends', async () => {
    const { running } = await start();
    for (const path of ['/livez', '/readyz', '/startupz'])
      expect((await running.probe(path)).status).toBe(200);
    const [, expiry] =
      /^\S+certificate_expiry_timestamp_seconds (\S+)$/m.exec((await running.probe('/metrics')).text) ?? [];
    expect(Number(expiry)).toBeGreaterThan(Date.now() / 1000);
  });

  it('is not ready with a certificate that has ended', async () => {
    const mounted = await mountCertificate();
    await mounted.issue(-1000);
    const running = runInjector(mounted.settings);
    const { status, text } = await running.probe('/readyz');
    expect([status, text]).toEqual([503, expect.stringContaining('"part": "certificate"')]);
  });

  it.each([
    ['another path', '/inject', {}, 404],
    ['another media type', '/mutate', { 'content-type': 'text/plain' }, 415],
    ['a body that is no review', '/mutate', {}, 400],
  ])('answers %s with an error, and the next review as ever', async (_, path, headers, status) => {
    const { client } = await start();
    expect(await client.call(path, '{}', headers)).toMatchObject({ status });
    expect(await client.call('/mutate', reviewOf(POD))).toMatchObject({ status: 200 });
  });

  it('does not read what is larger than any pod', async () => {
    const { client } = await start();
    const announced = client.call('/mutate', ' '.repeat(4 * 1024 * 1024 + 1));
    // The answer may come as the connection is already being reset under the rest of the body.
    await expect(announced.catch(() => ({ status: 413 }))).resolves.toMatchObject({ status: 413 });
  });

  it('takes a new certificate at once, under way, and keeps the last good one', async () => {
    const { client, mounted, port, running } = await start();
    const before = await client.call('/mutate', reviewOf(POD));
    const ca = await mounted.issue();
    await running.logged('certificate loaded');
    const after = await apiServer(port, ca).call('/mutate', reviewOf(POD));
    expect(after.certificate).not.toBe(before.certificate);
    // The connection that was open goes on.
    expect(await client.call('/mutate', reviewOf(POD))).toMatchObject({ status: 200 });

    await mounted.write({ 'tls.crt': 'not a certificate', 'tls.key': 'nor a key' });
    await running.logged('certificate not reloaded, the last good one stays');
    expect(await apiServer(port, ca).call('/mutate', reviewOf(POD))).toMatchObject({
      certificate: after.certificate,
    });
  });
});

describe('draining', () => {
  it('drops no review: it serves on until none comes, and asks for connections to be closed', async () => {
    const { client, running, port, ca } = await start(['--drain-delay', '5s']);
    await client.call('/mutate', reviewOf(POD));
    running.stop();
    await running.logged('draining');
    expect((await running.probe('/readyz')).status).toBe(503);
    // New and open connections, all the while.
    const answers = await Promise.all([
      client.call('/mutate', reviewOf(POD)),
      ...Array.from({ length: 20 }, () => apiServer(port, ca).call('/mutate', reviewOf(POD))),
    ]);
    expect(answers).toEqual(answers.map(() => expect.objectContaining({ status: 200, connection: 'close' })));
    expect(await running.status).toBe(0);
    await expect(apiServer(port, ca).call('/mutate', reviewOf(POD))).rejects.toThrow('ECONNREFUSED');
  });
});

describe('its settings', () => {
  it('are judged all at once', async () => {
    const { status } = runInjector([
      ...[
        '--check-secrets',
        'true',
        '--default-mode',
        'sideways',
        '--default-auth-url',
        'http://sso.example.com',
      ],
      ...['--default-memory-limit', 'lots', '--default-startup-seconds', '0', '--drain-timeout', '5'],
    ]);
    await expect(status).rejects.toMatchObject({
      exitCode: 78,
      problems: [
        '--check-secrets',
        '--tls-cert-file',
        '--drain-timeout',
        '--default-auth-url',
        '--default-mode',
        '--default-memory-limit',
        '--default-startup-seconds',
      ].map((key) => ({ key })),
    });
  });

  it.each([
    [
      ['--certificate-secret', 'x', '--tls-cert-file', '/a/b'],
      ['--tls-cert-file', '--certificate-secret', '--webhook-configuration'],
    ],
    [['--tls-cert-file', '/a/tls.crt', '--tls-key-file', '/b/tls.key'], ['--tls-key-file']],
    [['--tls-cert-file', '/nowhere/tls.crt', '--tls-key-file', '/nowhere/tls.key'], ['--tls-cert-file']],
    [
      [
        '--tls-cert-file',
        '/a/tls.crt',
        '--tls-key-file',
        '/a/tls.key',
        '--client-names',
        'x',
        '--events',
        'true',
      ],
      ['--events', '--client-names'],
    ],
    [
      [...['--tls-cert-file', '/a/tls.crt', '--tls-key-file', '/a/tls.key'], '--allowed-images', 'a/b:1,'],
      ['--allowed-images'],
    ],
  ])('%j: the certificate is wanted once and whole', async (args, keys) => {
    await expect(runInjector(args).status).rejects.toMatchObject({ problems: keys.map((key) => ({ key })) });
  });

  it('a certificate whose key is another’s is refused, without the key', async () => {
    const mounted = await mountCertificate();
    await mounted.issue();
    const other = await mountCertificate();
    await other.issue();
    const args = [...mounted.settings.slice(0, 2), ...other.settings.slice(2)];
    await expect(runInjector(args).status).rejects.toMatchObject({ exitCode: 78 });
  });
});
