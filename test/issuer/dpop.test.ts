/** Tokens bound to a key (RFC 9449), over sockets. Each proof is made by a library of others. */

import { request } from 'node:http';
import fc from 'fast-check';
import {
  base64url,
  createLocalJWKSet,
  decodeJwt,
  exportJWK,
  generateKeyPair,
  type JWTHeaderParameters,
  jwtVerify,
  SignJWT,
} from 'jose';
import * as oauth from 'oauth4webapi';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { issuerAdminEndpoints } from '../../src/issuer/admin.ts';
import { ProofFault, readProof } from '../../src/issuer/dpop-proof.ts';
import { createKeyRing, generateSigningKey } from '../../src/issuer/keys.ts';
import { UsedProofs } from '../../src/issuer/used-proofs.ts';
import { askForToken, basic, FORM, runIssuer, SHOP } from '../integration/issuer/running-issuer.ts';
import { ManualClock } from '../support/manual-clock.ts';

type Options = NonNullable<Parameters<typeof runIssuer>[1]>;

async function run(options: Options = {}, client: Partial<typeof SHOP> = {}) {
  const issuer = await runIssuer([{ ...SHOP, ...client }], options);
  onTestFinished(async () => await issuer.close());
  const ask = (proof: string) => askForToken(issuer.tokenUrl, { headers: { DPoP: proof } });
  return { ...issuer, ask };
}

const keys = await generateKeyPair('ES256');
const publicJwk = await exportJWK(keys.publicKey);
const seconds = (clock: ManualClock) => Math.floor(clock.now().wallMs / 1000);

interface Change {
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly key?: CryptoKey | Uint8Array;
}

/** A right proof, but for what is changed. */
function proofOf(tokenUrl: string, { header, claims, key }: Change = {}): Promise<string> {
  const payload = {
    ...{ htm: 'POST', htu: tokenUrl, jti: crypto.randomUUID(), iat: Math.floor(Date.now() / 1000) },
    ...claims,
  };
  return new SignJWT(payload)
    .setProtectedHeader({ typ: 'dpop+jwt', alg: 'ES256', jwk: publicJwk, ...header } as JWTHeaderParameters)
    .sign(key ?? keys.privateKey);
}

/** A client that others wrote. */
async function clientOf({ issuer, tokenUrl }: { issuer: string; tokenUrl: string }, algorithm: string) {
  const server = { issuer, token_endpoint: tokenUrl };
  const client: oauth.Client = { client_id: 'shop' };
  const DPoP = oauth.DPoP(client, await oauth.generateKeyPair(algorithm));
  const ask = () =>
    oauth.clientCredentialsGrantRequest(
      server,
      client,
      oauth.ClientSecretBasic('s3cret'),
      {},
      { DPoP, [oauth.allowInsecureRequests]: true },
    );
  return { server, client, DPoP, ask };
}

describe('a token for a proof', () => {
  it.each(['ES256', 'Ed25519', 'RS256', 'PS256'] as const)('by %s is bound to its key', async (algorithm) => {
    const issuer = await run();
    const { DPoP, ask } = await clientOf(issuer, algorithm);
    const response = await ask();
    const { status, headers } = response;
    const json = (await response.json()) as Record<string, unknown>;
    expect(status).toBe(200);
    expect(json).toEqual({
      access_token: expect.stringMatching(/^eyJ/),
      expires_in: 60,
      refresh_expires_in: 0,
      token_type: 'DPoP',
      'not-before-policy': 0,
      scope: 'read write',
    });
    expect(headers.get('dpop-nonce')).toBeNull();
    const token = String(json['access_token']);
    const { payload } = await jwtVerify(token, createLocalJWKSet(issuer.jwks()));
    expect(payload['cnf']).toEqual({ jkt: await DPoP.calculateThumbprint() });
  });

  it.each(['ES384', 'EdDSA'])('by %s is granted too', async (alg) => {
    const issuer = await run();
    const pair = await generateKeyPair(alg);
    const jwk = await exportJWK(pair.publicKey);
    const proof = await proofOf(issuer.tokenUrl, { header: { alg, jwk }, key: pair.privateKey });
    expect(await issuer.ask(proof)).toMatchObject({ status: 200, json: { token_type: 'DPoP' } });
  });

  it('is for the URL as clients know it, however that is written', async () => {
    const issuer = await run({ authUrl: new URL('https://sso.example.com/auth') });
    const ask = async (htu: string) => {
      const local = `http://127.0.0.1:${issuer.address.port}/auth/realms/dx/protocol/openid-connect/token`;
      return (await askForToken(local, { headers: { DPoP: await proofOf(htu) } })).status;
    };
    for (const htu of [
      issuer.tokenUrl,
      'HTTPS://SSO.Example.com:443/auth/realms/dx/protocol/openid-connect/token',
      `${issuer.tokenUrl}?a=b#c`,
      'https://sso.example.com/auth/./x/../realms/%64x/protocol/openid%2Dconnect/token',
    ]) {
      expect([htu, await ask(htu)]).toEqual([htu, 200]);
    }
    for (const htu of [
      issuer.tokenUrl.replace('https', 'http'),
      issuer.tokenUrl.replace('sso.', 'sso2.'),
      issuer.tokenUrl.replace('.com', '.com:8443'),
      issuer.tokenUrl.replace('//', '//user@'),
      `${issuer.tokenUrl}/`,
      issuer.tokenUrl.replace('/token', '%2Ftoken'),
      issuer.tokenUrl.replace('realms', 'REALMS'),
      ` ${issuer.tokenUrl}`,
      issuer.tokenUrl.replace('/auth', '\\auth'),
      new URL(issuer.tokenUrl).pathname,
    ]) {
      expect([htu, await ask(htu)]).toEqual([htu, 400]);
    }
  });
});

it('a request without a proof is answered as ever, and its token bound to nothing', async () => {
  const issuer = await run({ demandsNonces: true });
  const { json, headers } = await askForToken(issuer.tokenUrl);
  expect(json['token_type']).toBe('Bearer');
  expect(decodeJwt(String(json['access_token']))).not.toHaveProperty('cnf');
  expect(headers.get('dpop-nonce')).toBeNull();
});

const wrong = await generateKeyPair('ES256', { extractable: true });
const rsa1024 = await crypto.subtle.generateKey(
  { name: 'RSASSA-PKCS1-v1_5', modulusLength: 1024, publicExponent: Uint8Array.of(1, 0, 1), hash: 'SHA-256' },
  true,
  ['sign', 'verify'],
);

/** JOSE libraries sign with no such key, nor with none at all. */
async function signedByHand(tokenUrl: string, alg: 'RS256' | 'none'): Promise<string> {
  const jwk = alg === 'none' ? publicJwk : await exportJWK(rsa1024.publicKey);
  const [, payload] = (await proofOf(tokenUrl)).split('.');
  const input = `${base64url.encode(JSON.stringify({ typ: 'dpop+jwt', alg, jwk }))}.${payload}`;
  if (alg === 'none') return `${input}.`;
  const bytes = await crypto.subtle.sign('RSASSA-PKCS1-v1_5', rsa1024.privateKey, Buffer.from(input));
  return `${input}.${base64url.encode(new Uint8Array(bytes))}`;
}

describe('refused is', () => {
  const now = Math.floor(Date.now() / 1000);
  const secret = new Uint8Array(32).fill(1);
  const oct = { kty: 'oct', k: base64url.encode(secret) };
  it.each<[string, string, Change | ((url: string) => Promise<string>)]>([
    ['another method', 'method', { claims: { htm: 'GET' } }],
    ['the method in lower case', 'method', { claims: { htm: 'post' } }],
    ['another URL', 'url', (url) => proofOf(`${url}2`)],
    ['an old proof', 'time', { claims: { iat: now - 65 } }],
    ['a proof of the future', 'time', { claims: { iat: now + 600 } }],
    ["another key's proof", 'signature', { key: wrong.privateKey }],
    [
      'a changed claim',
      'signature',
      async (url) => {
        const [header, , signature] = (await proofOf(url)).split('.');
        return `${header}.${(await proofOf(url)).split('.')[1]}.${signature}`;
      },
    ],
    [
      'a private key',
      'key',
      async (url) => {
        const jwk = await exportJWK(wrong.privateKey);
        return proofOf(url, { header: { jwk }, key: wrong.privateKey });
      },
    ],
    ['a part of a private key', 'key', { header: { jwk: { ...publicJwk, dp: 'AQ' } } }],
    ['no key', 'key', { header: { jwk: undefined } }],
    ['a key that is none', 'key', { header: { jwk: 'x' } }],
    [
      'a key of another algorithm',
      'key',
      { header: { jwk: { kty: 'OKP', crv: 'Ed25519', x: publicJwk.x } } },
    ],
    ['a key off its curve', 'key', { header: { jwk: { ...publicJwk, y: publicJwk.x } } }],
    ['an RSA key of 1024 bits', 'key', (url) => signedByHand(url, 'RS256')],
    ['no signature', 'algorithm', (url) => signedByHand(url, 'none')],
    ['a symmetric algorithm', 'algorithm', { header: { alg: 'HS256', jwk: oct }, key: secret }],
    ['another type', 'type', { header: { typ: 'JWT' } }],
    ['no type', 'type', { header: { typ: undefined } }],
    ['no htm', 'claims', { claims: { htm: undefined } }],
    ['no htu', 'claims', { claims: { htu: undefined } }],
    ['no iat', 'claims', { claims: { iat: undefined } }],
    ['an iat in text', 'claims', { claims: { iat: String(now) } }],
    ['no jti', 'claims', { claims: { jti: undefined } }],
    ['an empty jti', 'claims', { claims: { jti: '' } }],
    ['a nonce that is no text', 'claims', { claims: { nonce: 1 } }],
    ['a proof that has expired', 'claims', { claims: { exp: now - 1 } }],
    [
      'an unknown critical header',
      'malformed',
      async (url) => {
        const proof = await proofOf(url);
        const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: publicJwk, crit: ['x'], x: 1 };
        return proof.replace(/^[^.]*/, base64url.encode(JSON.stringify(header)));
      },
    ],
    ['an empty header', 'malformed', async () => ''],
    ['two proofs in one field', 'malformed', async (url) => `${await proofOf(url)}, ${await proofOf(url)}`],
    ['half a proof', 'malformed', async (url) => (await proofOf(url)).replace(/\.[^.]*$/, '')],
    ['a proof that is too large', 'malformed', { claims: { more: 'x'.repeat(4096) } }],
  ])('%s (%s)', async (_, reason, change) => {
    const { tokenUrl, ask, registry, lines } = await run();
    const proof = typeof change === 'function' ? await change(tokenUrl) : await proofOf(tokenUrl, change);
    const { status, json } = await ask(proof);
    expect([status, json['error']]).toEqual([400, 'invalid_dpop_proof']);
    expect(json['error_description']).toMatch(/DPoP proof/);
    const text = await registry.metrics();
    expect(text).toContain(`token_sidecar_issuer_dpop_proofs_refused_total{reason="${reason}"} 1`);
    expect(text).toContain('token_sidecar_issuer_tokens_total{result="invalid_dpop_proof"} 1');
    for (const part of proof.split('.').filter((one) => one !== '')) {
      expect(lines.join('') + JSON.stringify(json)).not.toContain(part);
    }
  });

  it('a second DPoP header', async () => {
    const { tokenUrl } = await run();
    const status = await new Promise((resolve, reject) => {
      const headers = { 'Content-Type': FORM, Authorization: basic('shop', 's3cret') };
      const asking = request(tokenUrl, { method: 'POST', headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      asking.on('error', reject);
      void Promise.all([proofOf(tokenUrl), proofOf(tokenUrl)]).then((proofs) => {
        asking.setHeader('DPoP', proofs);
        asking.end('grant_type=client_credentials');
      });
    });
    expect(status).toBe(400);
  });

  it('a proof that has been used, also by requests at once, and only that', async () => {
    const { tokenUrl, ask } = await run();
    const proof = await proofOf(tokenUrl);
    const statuses = await Promise.all(Array.from({ length: 8 }, async () => (await ask(proof)).status));
    expect(statuses.sort()).toEqual([200, 400, 400, 400, 400, 400, 400, 400]);
    expect((await ask(proof)).json['error_description']).toContain('jti');
    expect((await ask(await proofOf(tokenUrl))).status).toBe(200);
  });

  it('a request without a proof, by a client that must send one', async () => {
    const { tokenUrl, ask } = await run({}, { dpopBoundAccessTokens: 'true' });
    expect(await askForToken(tokenUrl)).toMatchObject({
      status: 400,
      json: { error: 'invalid_dpop_proof', error_description: 'the client must send a DPoP proof' },
    });
    expect((await ask(await proofOf(tokenUrl))).status).toBe(200);
  });

  it('a wrong secret before its proof, which may then be used', async () => {
    const { tokenUrl, ask } = await run();
    const proof = await proofOf(tokenUrl);
    const authorization = basic('shop', 'wrong');
    const answer = await askForToken(tokenUrl, { authorization, headers: { DPoP: proof } });
    expect(answer.json['error']).toBe('invalid_client');
    expect((await ask(proof)).status).toBe(200);
  });
});

it('an age is accepted up to its bounds, and a proof is refused again until it is too old', async () => {
  const clock = new ManualClock();
  const { tokenUrl, ask } = await run({ clock });
  const at = (shift: number) => proofOf(tokenUrl, { claims: { iat: seconds(clock) + shift } });
  expect((await ask(await at(-60))).status).toBe(200);
  expect((await ask(await at(-61))).status).toBe(400);
  expect((await ask(await at(11))).status).toBe(400);
  const early = await at(10);
  expect((await ask(early)).status).toBe(200);
  await clock.advance(70_000);
  expect((await ask(early)).json['error_description']).toContain('jti');
  await clock.advance(1000);
  expect((await ask(early)).json['error_description']).toContain('iat');
});

describe('where nonces are demanded', () => {
  it("another library's client gets its token with the second request, and is told of a new nonce", async () => {
    const clock = new ManualClock();
    const issuer = await run({ demandsNonces: true, clock });
    const { server, client, ask: send } = await clientOf(issuer, 'ES256');
    const nonces: (string | null)[] = [];
    const ask = async () => {
      const response = await send();
      nonces.push(response.headers.get('dpop-nonce'));
      return await oauth.processClientCredentialsResponse(server, client, response);
    };
    // Its clock is far from the issuer's: only the nonce's time counts.
    const refusal = await ask().catch((error: unknown) => error);
    expect(oauth.isDPoPNonceError(refusal)).toBe(true);
    expect((await ask()).token_type).toBe('dpop');
    expect(nonces).toEqual([expect.stringMatching(/^[\w-]{43}$/), null]);
    await clock.advance(30_000);
    await ask();
    await ask();
    expect(nonces.slice(2)).toEqual([expect.stringMatching(/^[\w-]{43}$/), null]);
    expect(nonces[2]).not.toBe(nonces[0]);
  });

  it('one is accepted for a minute at least, and by whoever has the same signing key', async () => {
    const clock = new ManualClock();
    const ring = createKeyRing(await generateSigningKey('ES256'), clock);
    const first = await run({ demandsNonces: true, clock, keys: ring });
    const ask = async (nonce?: string, issuer = first) => {
      const proof = await proofOf(issuer.tokenUrl, { claims: { nonce } });
      const { json, headers } = await issuer.ask(proof);
      return [json['error'] ?? json['token_type'], headers.get('dpop-nonce')];
    };
    const [error, nonce] = await ask();
    expect(error).toBe('use_dpop_nonce');
    expect(await ask('x')).toEqual(['use_dpop_nonce', nonce]);
    expect(await ask(nonce as string)).toEqual(['DPoP', null]);

    const replica = await run({ demandsNonces: true, clock, keys: createKeyRing(ring.current(), clock) });
    expect(await ask(nonce as string, replica)).toEqual(['DPoP', null]);
    const stranger = await run({ demandsNonces: true, clock });
    expect((await ask(nonce as string, stranger))[0]).toBe('use_dpop_nonce');

    await clock.advance(60_000);
    const [type, next] = await ask(nonce as string);
    expect([type, next]).toEqual(['DPoP', expect.not.stringMatching(String(nonce))]);
    await clock.advance(30_000);
    expect((await ask(nonce as string))[0]).toBe('use_dpop_nonce');
    // A replica whose clock is a step behind takes the newer one.
    clock.stepWall(-60_000);
    expect((await ask(next as string))[0]).toBe('DPoP');
  });

  it('a proof is used once for as long as its nonce is accepted', async () => {
    const clock = new ManualClock();
    const { tokenUrl, ask, lines } = await run({ demandsNonces: true, clock });
    const nonce = String((await ask(await proofOf(tokenUrl))).headers.get('dpop-nonce'));
    const proof = await proofOf(tokenUrl, { claims: { nonce } });
    expect((await ask(proof)).status).toBe(200);
    for (const error of ['invalid_dpop_proof', 'invalid_dpop_proof', 'use_dpop_nonce', 'use_dpop_nonce']) {
      await clock.advance(30_000);
      expect((await ask(proof)).json['error']).toBe(error);
    }
    expect(lines.join('')).not.toContain(nonce);
  });

  it('a proof with the nonce of a replica whose clock is ahead is used once, too', async () => {
    const clock = new ManualClock();
    await clock.advance(30_000 - (clock.now().wallMs % 30_000));
    const { tokenUrl, ask } = await run({ demandsNonces: true, clock });
    const nonce = String((await ask(await proofOf(tokenUrl))).headers.get('dpop-nonce'));
    clock.stepWall(-30_000);
    const proof = await proofOf(tokenUrl, { claims: { nonce } });
    expect((await ask(proof)).status).toBe(200);
    await clock.advance(119_000);
    expect((await ask(proof)).json['error']).toBe('invalid_dpop_proof');
    await clock.advance(1000);
    expect((await ask(proof)).json['error']).toBe('use_dpop_nonce');
  });
});

it('whatever JSON is in a proof, it is judged, and refused unless a right one may have it', async () => {
  const inHeader = ['typ', 'alg', 'jwk', 'crit'];
  const mayBeRight = ['jti', 'iat', 'exp', 'nbf', 'nonce'];
  const name = fc.constantFrom(...inHeader, ...mayBeRight, 'htm', 'htu');
  const facts = { tokenUrl: 'https://sso.example.com/token', nowMs: Date.now() };
  const claims = { htm: 'POST', htu: facts.tokenUrl, jti: 'x', iat: 1 };
  const right = { typ: 'dpop+jwt', alg: 'ES256', jwk: publicJwk };
  await fc.assert(
    fc.asyncProperty(name, fc.jsonValue(), fc.string(), async (name, value, signature) => {
      const isHeader = inHeader.includes(name);
      const parts = [
        { ...right, ...(isHeader ? { [name]: value } : {}) },
        { ...claims, ...(isHeader ? {} : { [name]: value }) },
      ];
      const input = parts.map((part) => base64url.encode(JSON.stringify(part))).join('.');
      const bytes = await crypto.subtle.sign(
        { name: 'ECDSA', hash: 'SHA-256' },
        keys.privateKey,
        Buffer.from(input),
      );
      const signed = `${input}.${base64url.encode(new Uint8Array(bytes))}`;
      const outcome = await readProof(signed, facts);
      if (!mayBeRight.includes(name)) expect(outcome).toBeInstanceOf(ProofFault);
      for (const text of [`${input}.${signature}`, signature, JSON.stringify(value)]) {
        expect(await readProof(text, facts)).toBeInstanceOf(ProofFault);
      }
    }),
    { numRuns: 300, examples: [['alg', { toString: 1 }, '']] },
  );
});

it('a client that has sent too many proofs is asked to come again', async () => {
  const { tokenUrl, ask } = await run();
  const use = vi.spyOn(UsedProofs.prototype, 'use').mockReturnValue('full');
  onTestFinished(() => use.mockRestore());
  const { status, headers, json } = await ask(await proofOf(tokenUrl));
  expect([status, headers.get('retry-after')]).toEqual([503, '1']);
  expect(json['error']).toBe('temporarily_unavailable');
});

it('the metadata names the algorithms', async () => {
  const issuer = await run();
  const endpoints = issuerAdminEndpoints(
    issuer,
    () => false,
    () => 'http://admin',
  );
  const answer = endpoints['/realms/dx/.well-known/openid-configuration']?.answer({} as never);
  expect(JSON.stringify(await answer)).toContain('dpop_signing_alg_values_supported');
});
