/** What no provider's test shows: parts of a proof in corner cases. Its use is tested in `test/e2e/oidc-provider/dpop.test.ts`. */

import { createHash, generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { calculateJwkThumbprint, decodeJwt, decodeProtectedHeader, type JWK } from 'jose';
import { describe, expect, it } from 'vitest';
import type { BoundToken } from '../../../src/token/bearer-source.ts';
import { makeProof, makeProofKey, parseProofKey } from '../../../src/token/dpop/proof.ts';
import { ProofMaker } from '../../../src/token/dpop/proof-maker.ts';
import { RequestProof } from '../../../src/token/dpop/request-proof.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const ORIGIN = { protocol: 'https' as const, authority: 'api.test' };
const key = makeProofKey();

function bound(): { readonly token: BoundToken; readonly proofs: ProofMaker; readonly clock: ManualClock } {
  const clock = new ManualClock();
  const proofs = new ProofMaker(clock);
  return { token: proofs.bind('token', key), proofs, clock };
}

function refusal(error: string, ...nonces: string[]) {
  return { status: 401, nonces, challenges: [`Bearer realm="a", DPoP algs="ES256", error="${error}"`] };
}

describe('a proof', () => {
  it('has the members that RFC 9449 names, and no private one of the key', () => {
    const proof = makeProof(key, { method: 'GET', uri: 'https://api.test/', nowMs: 1_700_000_000_999 });
    const { typ, alg, jwk } = decodeProtectedHeader(proof);
    expect([typ, alg, Object.keys(jwk ?? {}).toSorted()]).toEqual([
      'dpop+jwt',
      'ES256',
      ['crv', 'kty', 'x', 'y'],
    ]);
    const { jti, ...claims } = decodeJwt(proof);
    expect(claims).toEqual({ htm: 'GET', htu: 'https://api.test/', iat: 1_700_000_000 });
    expect(Buffer.from(jti ?? '', 'base64url')).toHaveLength(16);
  });

  it.each([
    ['rsa', { modulusLength: 2048 }],
    ['ec', { namedCurve: 'P-384' }],
    ['ed25519', {}],
  ] as const)('of a mounted %s key has no private member', (type, options) => {
    const { privateKey } = generateKeyPairSync(type as 'rsa', options as { modulusLength: number });
    const mounted = parseProofKey(privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
    if ('expected' in mounted) throw new Error(mounted.expected);
    const { jwk } = decodeProtectedHeader(
      makeProof(mounted, { method: 'GET', uri: 'https://api.test/', nowMs: 0 }),
    );
    expect(
      Object.keys(jwk ?? {}).filter((name) => !['kty', 'crv', 'x', 'y', 'n', 'e'].includes(name)),
    ).toEqual([]);
  });

  it.each([0, 1])('of one of two tokens is by its own key, whichever is newer (%i)', async (at) => {
    const { proofs } = bound();
    const token = ['a', 'b'].map((text) => proofs.bind(text, makeProofKey()))[at] as BoundToken;
    const { jwk } = decodeProtectedHeader(new RequestProof(ORIGIN).make(token, 'GET', '/'));
    expect(await calculateJwkThumbprint(jwk as JWK)).toBe(token.thumbprint);
  });

  it('beside a token has the hash of that token', () => {
    const proof = new RequestProof(ORIGIN).make(bound().token, 'GET', '/');
    expect(decodeJwt(proof)['ath']).toBe(createHash('sha256').update('token').digest('base64url'));
  });

  it('names the URL as it is sent, without query and fragment, as WHATWG URL and RFC 3986 understand it', () => {
    const part = fc.stringMatching(/^(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2}){0,20}$/);
    const host = fc.constantFrom('API.test', 'api.test:443', 'api.test:80', 'api.test:8443', '[::1]:443');
    fc.assert(
      fc.property(
        fc.constantFrom('http' as const, 'https' as const),
        host,
        part,
        part,
        (protocol, authority, path, query) => {
          const proof = new RequestProof({ protocol, authority }).make(
            bound().token,
            'GET',
            `/${path}?${query}#x`,
          );
          const { htu } = decodeJwt(proof);
          const whole = new URL(`${protocol}://${authority}/${path}`);
          expect(new URL(String(htu)).href).toBe(whole.href);
          expect(String(htu)).toBe(`${whole.origin}/${path}`);
        },
      ),
    );
  });

  it('for the server as a whole (OPTIONS *) names its root', () => {
    expect(decodeJwt(new RequestProof(ORIGIN).make(bound().token, 'OPTIONS', '*'))['htu']).toBe(
      'https://api.test/',
    );
  });

  it.each([
    [-60_000, -60],
    [-5000, -5],
    [2000, 0],
    [3600_000, 3600],
  ])('is dated by the clock of a provider that differs by %i ms', (byMs, seconds) => {
    const { token, proofs, clock } = bound();
    const nowMs = clock.now().wallMs;
    const date = new Date(nowMs + byMs).toUTCString();
    proofs.dated({ date, requestedAtMs: nowMs, receivedAtMs: nowMs });
    const iat = decodeJwt(new RequestProof(ORIGIN).make(token, 'GET', '/')).iat ?? 0;
    expect(Math.abs(iat - Math.floor(nowMs / 1000) - seconds)).toBeLessThanOrEqual(1);
  });
});

it('a proof is dated by that clock still, once our own is set right', () => {
  const { token, proofs, clock } = bound();
  const nowMs = clock.now().wallMs;
  const date = new Date(nowMs + 3600_000).toUTCString();
  proofs.dated({ date, requestedAtMs: nowMs, receivedAtMs: nowMs });
  const iat = () => decodeJwt(new RequestProof(ORIGIN).make(token, 'GET', '/')).iat;
  const before = iat();
  clock.stepWall(3600_000);
  expect(iat()).toBe(before);
});

describe('an answer to a request with a proof', () => {
  const nonceIn = (proof: string): unknown => decodeJwt(proof)['nonce'];

  it('that wants a nonce has the request sent again with that nonce, once', () => {
    const { token } = bound();
    const request = new RequestProof(ORIGIN);
    expect(nonceIn(request.make(token, 'GET', '/'))).toBeUndefined();
    expect(request.judge(token, refusal('use_dpop_nonce', 'n1'), true)).toBe('nonce_wanted');
    expect(nonceIn(request.make(token, 'GET', '/'))).toBe('n1');
    expect(request.judge(token, refusal('use_dpop_nonce', 'n2'), true)).toBe('nonce_refused');
    expect(nonceIn(new RequestProof(ORIGIN).make(token, 'GET', '/'))).toBe('n2');
  });

  it('gives its nonce to the next request if its own cannot be sent again', () => {
    const { token } = bound();
    expect(new RequestProof(ORIGIN).judge(token, refusal('use_dpop_nonce', 'n1'), false)).toBe(
      'nonce_refused',
    );
    expect(nonceIn(new RequestProof(ORIGIN).make(token, 'GET', '/'))).toBe('n1');
  });

  it('gives its nonce to requests to the same origin alone', () => {
    const { token } = bound();
    new RequestProof(ORIGIN).judge(token, { status: 200, nonces: ['n1'], challenges: [] }, true);
    const elsewhere = { ...ORIGIN, authority: 'api.test:8443' };
    expect(nonceIn(new RequestProof(elsewhere).make(token, 'GET', '/'))).toBeUndefined();
  });

  it.each([
    ['two', ['n1', 'n2']],
    ['none', []],
    ['one that no proof may hold', ['a"b']],
    ['one of 1025 characters', ['x'.repeat(1025)]],
  ])('that wants a nonce, and gives %s, is passed on', (_, nonces) => {
    const { token } = bound();
    const request = new RequestProof(ORIGIN);
    expect(request.judge(token, refusal('use_dpop_nonce', ...nonces), true)).toBe('nonce_refused');
    expect(nonceIn(request.make(token, 'GET', '/'))).toBeUndefined();
  });

  it('with 128 KiB of challenges is judged in no time', () => {
    const answer = { status: 401, nonces: [], challenges: [', DPoP error'.repeat(12_000)] };
    const beforeMs = performance.now();
    expect(new RequestProof(ORIGIN).judge(bound().token, answer, true)).toBe('none');
    expect(performance.now() - beforeMs).toBeLessThan(100);
  });

  it.each([
    ['DPoP error="invalid_token"', 'none'],
    ['DPoP error="invalid_dpop_proof"', 'proof_refused'],
    ['Bearer error="invalid_dpop_proof"', 'none'],
    ['DPoP error_description="error=use_dpop_nonce", error="invalid_dpop_proof"', 'proof_refused'],
    ['Basic realm="DPoP error=", dpop error=invalid_dpop_proof', 'proof_refused'],
  ])('with the challenge %s: %s', (challenge, verdict) => {
    const answer = { status: 401, nonces: [], challenges: [challenge] };
    expect(new RequestProof(ORIGIN).judge(bound().token, answer, true)).toBe(verdict);
  });
});

it.each(['a text', 'an EC key on P-521'])('%s as the mounted key is told what was expected', (what) => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-521' });
  const text = what === 'a text' ? what : (privateKey.export({ type: 'pkcs8', format: 'pem' }) as string);
  expect(parseProofKey(text)).toMatchObject({
    expected: expect.stringContaining('EC on P-256 or P-384, Ed25519'),
  });
});
