import { createHash, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { expect, it, onTestFinished } from 'vitest';
import { createProofCheck, sendWithoutProof } from '../../src/demo/bound-tokens.ts';
import { startProtectedApi } from '../../src/demo/parties.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { systemClock } from '../../src/platform/time/clock.ts';

const provider = await generateKeyPair('ES256');
const own = await generateKeyPair('ES256');
const others = await generateKeyPair('ES256');
const jkt = await calculateJwkThumbprint(await exportJWK(own.publicKey));
const bound = await token({ cnf: { jkt } });
const unbound = await token({});

function token(claims: JWTPayload): Promise<string> {
  return new SignJWT({ azp: 'shop', ...claims })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuer('demo')
    .setAudience('api')
    .setJti(randomUUID())
    .setExpirationTime('60s')
    .sign(provider.privateKey);
}

async function startApi(): Promise<string> {
  const api = await startProtectedApi({
    listen: { host: '127.0.0.1', port: 0 },
    keys: () => provider.publicKey,
    issuer: 'demo',
    audience: 'api',
    checkProof: createProofCheck(systemClock),
  });
  onTestFinished(() => api.close());
  return `http://${formatAddress(api.address)}/whoami`;
}

const now = (): number => Math.floor(Date.now() / 1000);

interface Proof {
  readonly claims?: JWTPayload;
  readonly typ?: string;
  readonly pair?: typeof own;
  readonly signedBy?: typeof own;
}

async function prove(url: string, { claims, typ = 'dpop+jwt', pair = own, signedBy = pair }: Proof = {}) {
  const ath = createHash('sha256').update(bound).digest('base64url');
  return new SignJWT({ jti: randomUUID(), htm: 'GET', htu: url, iat: now(), ath, ...claims })
    .setProtectedHeader({ typ, alg: 'ES256', jwk: await exportJWK(pair.publicKey) })
    .sign(signedBy.privateKey);
}

function send(url: string, proof: string | undefined, sent = `DPoP ${bound}`): Promise<Response> {
  const headers = {
    authorization: sent,
    connection: 'close',
    ...(proof === undefined ? {} : { DPoP: proof }),
  };
  return fetch(url, { headers });
}

it('a bound token with its proof is taken, and the proof not again', async () => {
  const url = await startApi();
  const proof = await prove(url);
  const first = await send(`${url}?page=2`, proof);
  expect(first.status).toBe(200);
  expect(await first.json()).toMatchObject({ caller: { client: 'shop', tokenIsBoundTo: jkt } });
  const again = await send(url, proof);
  expect(again.status).toBe(401);
  expect(again.headers.get('www-authenticate')).toMatch(/^DPoP .*error="invalid_dpop_proof"$/);
  expect(await again.json()).toMatchObject({ reason: 'it has been used before' });
});

it.each<readonly [string, Proof, string]>([
  ['of another method', { claims: { htm: 'POST' } }, 'another request'],
  ['of another URL', { claims: { htu: 'http://127.0.0.1/whoami' } }, 'another request'],
  ['of another token', { claims: { ath: 'x' } }, 'another token'],
  ['by another key', { pair: others }, 'another key'],
  ['signed by another key', { signedBy: others }, 'form, signature or time'],
  ['of another type', { typ: 'JWT' }, 'form, signature or time'],
  ['too old', { claims: { iat: now() - 30 } }, 'form, signature or time'],
  ['of the future', { claims: { iat: now() + 30 } }, 'form, signature or time'],
  ['without a jti', { claims: { jti: '' } }, 'no jti'],
])('a proof %s is refused', async (_, facts, reason) => {
  const url = await startApi();
  const answer = await send(url, await prove(url, facts));
  expect(answer.status).toBe(401);
  expect(await answer.json()).toEqual({
    error: 'invalid DPoP proof',
    reason: expect.stringContaining(reason),
  });
});

it('a stolen token is refused: as Bearer, without a proof, and if it is bound to no key', async () => {
  const url = await startApi();
  expect(await sendWithoutProof(url, bound)).toBe(401);
  expect((await send(url, await prove(url), `Bearer ${bound}`)).status).toBe(401);
  expect((await send(url, undefined)).status).toBe(401);
  const ath = createHash('sha256').update(unbound).digest('base64url');
  expect((await send(url, await prove(url, { claims: { ath } }), `DPoP ${unbound}`)).status).toBe(401);
});
