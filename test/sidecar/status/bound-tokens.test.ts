/** What the status page and its report say of tokens that are bound to a key. */

import { createHash, generateKeyPairSync } from 'node:crypto';
import { expect, it } from 'vitest';
import { formatAddress } from '../../../src/platform/net/address.ts';
import type { CredentialReport, StatusReport } from '../../../src/sidecar/status/report.ts';
import { World } from '../../faults/world.ts';
import { leakedIn } from '../../support/leaked.ts';

const MINUTE_MS = 60_000;

interface Mounted {
  readonly credential?: Readonly<Record<string, unknown>>;
  readonly files?: Readonly<Record<string, string>>;
}

async function start({ credential, files = {} }: Mounted = {}): Promise<World> {
  const grant = {
    name: 'client_credentials',
    type: 'client_credentials',
    credential: { proofOfPossession: 'dpop', ...credential },
    files,
  };
  const world = await World.start({ grant });
  await world.until(() => world.token.ready, 1000, 10);
  return world;
}

async function read(world: World, path: string): Promise<string> {
  return (await fetch(`http://${formatAddress(world.sidecar.adminAddress)}${path}`)).text();
}

/** Pages, metrics and the log. */
async function allShown(world: World): Promise<string> {
  const pages = await Promise.all(['/', '/api/status', '/metrics'].map((path) => read(world, path)));
  return [...pages, ...world.logLines].join('\n');
}

async function statusOf(world: World): Promise<StatusReport & { readonly credential: CredentialReport }> {
  const status = JSON.parse(await read(world, '/api/status')) as StatusReport;
  return { ...status, credential: status.credentials[0] as CredentialReport };
}

/** RFC 7638 §3.2. */
function thumbprintOf({ crv, kty, x, y }: Readonly<Record<string, unknown>>): string {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
}

it('its own key, and counts, but no proof and no token', async () => {
  const world = await start();
  await world.live(MINUTE_MS);
  const { credential, verdict } = await statusOf(world);
  expect(verdict.level).toBe('ok');
  expect(credential.proofOfPossession).toEqual({
    method: 'dpop',
    key: 'own',
    thumbprint: expect.stringMatching(/^[\w-]{43}$/),
    holdsBearer: false,
    proofs: 13,
    nonces: 0,
    nonceRepeats: 0,
    refusedProofs: 0,
  });
  expect(await read(world, '/')).toContain('own key of this process');
  expect(leakedIn(await allShown(world), ['token-1'])).toEqual([]);
});

it('how often a nonce was taken, and a request sent again for one', async () => {
  const world = await start();
  world.upstream.refusesAll = true;
  world.upstream.challenge = 'DPoP error="use_dpop_nonce"';
  world.upstream.nonce = 'n1';
  await world.live(10_000);
  const { credential } = await statusOf(world);
  const { nonces = 0, nonceRepeats = 0 } = credential.proofOfPossession ?? {};
  expect([nonces, nonceRepeats > 0]).toEqual([1, true]);
  expect(await read(world, '/metrics')).toContain(
    `token_sidecar_dpop_nonce_repeats_total{credential="default"} ${nonceRepeats}`,
  );
});

it('the thumbprint of the mounted key', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const world = await start({ credential: { dpop: { keyFile: 'key' } }, files: { key } });
  const thumbprint = thumbprintOf({ ...publicKey.export({ format: 'jwk' }) });
  expect((await statusOf(world)).credential.proofOfPossession).toMatchObject({ key: 'mounted', thumbprint });
  expect(await read(world, '/')).toContain(`mounted key, ${thumbprint}`);
  const parts = key.split('\n').filter((line) => !line.startsWith('-----'));
  expect(leakedIn(await allShown(world), parts)).toEqual([]);
});

it('a Bearer token that is let pass', async () => {
  const world = await World.start({
    grant: {
      name: 'client_credentials',
      type: 'client_credentials',
      credential: { proofOfPossession: 'dpop', dpop: { allowBearer: true } },
      files: {},
    },
  });
  world.provider.behaviour = (response) =>
    response.end('{"access_token":"t","token_type":"Bearer","expires_in":300}');
  await world.until(() => world.token.ready, 1000, 10);
  expect((await statusOf(world)).credential.proofOfPossession).toMatchObject({ holdsBearer: true });
  expect(await read(world, '/')).toContain('none: the provider gave a Bearer token');
});

it('an upstream that refuses proofs is a problem of the credential until a minute later', async () => {
  const world = await start();
  world.upstream.refusesAll = true;
  world.upstream.challenge = 'DPoP error="invalid_dpop_proof"';
  await world.live(20_000);
  const { credential, verdict } = await statusOf(world);
  expect(verdict).toMatchObject({
    level: 'warning',
    problems: [
      {
        about: { kind: 'credential', name: 'default' },
        what: 'an upstream refuses the proofs of credential default',
        runbook: 'TokenSidecarProofsRefused',
      },
    ],
  });
  expect(credential).toMatchObject({
    level: 'warning',
    state: 'ready',
    proofOfPossession: { refusedProofs: 4, lastRefusedAt: expect.any(String) },
  });
  world.upstream.refusesAll = false;
  await world.live(MINUTE_MS);
  expect((await statusOf(world)).verdict.level).toBe('ok');
});
