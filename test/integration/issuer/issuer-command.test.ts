import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { parseScryptHash } from '../../../src/issuer/secret-hashing.ts';
import { askForToken } from './running-issuer.ts';
import { runIssuerCommand as run } from './running-issuer-command.ts';

const CLIENTS = 'clients: [{ clientId: shop, clientSecret: s3cret, audience: [payments] }]';
const EPHEMERAL = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];

let root: string;
let clientsFile: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'token-sidecar-issuer-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  clientsFile = join(root, 'clients.yaml');
  await writeFile(clientsFile, CLIENTS);
});

/** In one step, so that no reading falls between. */
async function replaceFile(path: string, content: string): Promise<void> {
  await writeFile(`${path}.next`, content);
  await rename(`${path}.next`, path);
}

describe('token-sidecar issuer', () => {
  it('issues tokens that verify against the JWKS of its admin listener, and ends with 0', async () => {
    const command = run([...EPHEMERAL, '--clients-file', clientsFile, '--token-lifetime', '2m']);
    const { tokenUrl, issuer: iss, admin } = (await command.logged('ready')) as Record<string, string>;
    const { json } = await askForToken(String(tokenUrl));
    expect(json).toMatchObject({ expires_in: 120 });
    for (const path of ['/jwks', '/realms/dx/protocol/openid-connect/certs']) {
      const keys = createRemoteJWKSet(new URL(path, `http://${admin}`));
      await jwtVerify(String(json['access_token']), keys, { issuer: String(iss), audience: 'payments' });
    }
    for (const path of ['/livez', '/readyz', '/startupz']) {
      expect((await fetch(`http://${admin}${path}`)).status).toBe(200);
    }
    const metrics = await (await fetch(`http://${admin}/metrics`)).text();
    expect(metrics).toContain('token_sidecar_issuer_tokens_total{result="issued"} 1');
    expect(metrics).toContain('token_sidecar_issuer_clients 1');
    command.stop();
    expect(await command.status).toBe(0);
    expect(command.output()).not.toContain('s3cret');
  });

  it('is configured by the environment too', async () => {
    const command = run(EPHEMERAL, {
      TOKEN_SIDECAR_CLIENTS_FILE: clientsFile,
      TOKEN_SIDECAR_AUTH_URL: 'https://sso.example.com/auth',
      TOKEN_SIDECAR_REALM: 'other',
    });
    expect(await command.logged('ready')).toMatchObject({
      issuer: 'https://sso.example.com/auth/realms/other',
      tokenUrl: 'https://sso.example.com/auth/realms/other/protocol/openid-connect/token',
    });
  });

  it('signs with the key in a file, and with its successor when the file changes', async () => {
    const keyFile = join(root, 'signing.pem');
    const newKey = (): string =>
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
        type: 'pkcs8',
        format: 'pem',
      }) as string;
    await writeFile(keyFile, newKey());
    const command = run([...EPHEMERAL, '--clients-file', clientsFile, '--signing-key-file', keyFile]);
    const { tokenUrl, admin, kid } = (await command.logged('ready')) as Record<string, string>;
    const before = await askForToken(String(tokenUrl));
    await replaceFile(keyFile, newKey());
    const loaded = await command.logged('signing key loaded');
    expect(loaded['kid']).not.toBe(kid);
    const after = await askForToken(String(tokenUrl));
    const keys = createRemoteJWKSet(new URL('/jwks', `http://${admin}`));
    for (const { json } of [before, after]) await jwtVerify(String(json['access_token']), keys);

    await replaceFile(keyFile, 'no key any more');
    await command.logged('signing key not reloaded, the last good one stays');
    const { json } = await askForToken(String(tokenUrl));
    const { protectedHeader } = await jwtVerify(String(json['access_token']), keys);
    expect(protectedHeader.kid).toBe(loaded['kid']);
  });

  it('reports every problem with its settings at once', async () => {
    const { status } = run([
      ...['--listen', 'nowhere', '--auth-url', 'ftp://x', '--realm', 'a/b', '--signing-alg', 'HS256'],
      ...['--token-lifetime', '1500ms', '--log-level', 'loud'],
    ]);
    await expect(status).rejects.toMatchObject({
      exitCode: 78,
      problems: [
        '--auth-url',
        '--clients-file',
        '--listen',
        '--realm',
        '--signing-alg',
        '--token-lifetime',
        '--log-level',
      ].map((key) => ({ key })),
    });
  });

  it('reports the problems of settings, clients and key at once', async () => {
    const keyFile = join(root, 'signing.pem');
    const { privateKey } = generateKeyPairSync('ed25519');
    await writeFile(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    await writeFile(clientsFile, 'clients: [{ clientId: a }]');
    const files = ['--clients-file', clientsFile, '--signing-key-file', keyFile];
    const { status } = run([...EPHEMERAL, ...files, '--realm', 'a/b']);
    await expect(status).rejects.toMatchObject({
      exitCode: 78,
      problems: [
        { key: '--realm', value: 'a/b' },
        { key: `${clientsFile}: clients[0].clientSecret` },
        { key: '--signing-key-file', value: keyFile, expected: expect.stringContaining('EdDSA') },
      ],
    });
  });

  it('takes clients from a file or from a directory, not from both', async () => {
    const { status } = run(['--clients-file', clientsFile, '--clients-dir', root]);
    await expect(status).rejects.toMatchObject({ exitCode: 78, problems: [{ key: '--clients-dir' }] });
  });

  it('says which address cannot be had', async () => {
    const first = run([...EPHEMERAL, '--clients-file', clientsFile]);
    const { listen } = (await first.logged('ready')) as Record<string, string>;
    const second = run([...EPHEMERAL, '--clients-file', clientsFile].with(1, String(listen)));
    await expect(second.status).rejects.toMatchObject({
      exitCode: 78,
      message: expect.stringContaining(String(listen)),
    });
  });
});

it("names Istio's sidecar when its telemetry port is taken", async () => {
  // An address of its own: other programs of this machine may listen on the port.
  const holder = createServer();
  holder.listen(15090, '127.90.90.90');
  await Promise.race([once(holder, 'listening'), once(holder, 'error')]);
  onTestFinished(() => void holder.close());
  const { status } = run(['--clients-file', clientsFile, '--listen', '127.90.90.90:15090']);
  await expect(status).rejects.toMatchObject({ exitCode: 78, message: expect.stringContaining('Istio') });
});

describe('token-sidecar issuer hash', () => {
  it('prints the hash of the secret on standard input, which is then accepted', async () => {
    const hash = run(['hash'], {}, 's3cret\n');
    expect(await hash.status).toBe(0);
    const text = hash.output().trimEnd();
    expect(parseScryptHash(text)).toBeDefined();
    await writeFile(clientsFile, `clients: [{ clientId: shop, secretHash: '${text}' }]`);
    const command = run([...EPHEMERAL, '--clients-file', clientsFile]);
    const { tokenUrl } = (await command.logged('ready')) as Record<string, string>;
    expect((await askForToken(String(tokenUrl))).status).toBe(200);
  });

  it.each([
    ['no secret', ['hash'], '\n'],
    ['too long a secret', ['hash'], 'x'.repeat(70_000)],
    ['a secret on the command line', ['hash', 'hunter2'], 'x'],
    ['another operand', ['hunter2'], 'x'],
  ])('with %s is a usage error that does not repeat it', async (_name, args, input) => {
    const { status } = run(args, {}, input);
    await expect(status).rejects.toMatchObject({
      exitCode: 64,
      message: expect.not.stringContaining('hunter2'),
    });
  });
});
