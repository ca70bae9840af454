import type { IncomingMessage, RequestListener } from 'node:http';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { expect, it } from 'vitest';
import { checkCredential } from '../../src/check/credential.ts';
import { checkUpstream, upstreamsOf } from '../../src/check/upstream.ts';
import type { DpopConfig } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { credentialConfig } from '../support/credential-config.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { examination, lines, serve } from './examined.ts';

/** Without its ports. */
function textOf(found: Parameters<typeof lines>[0]): string[] {
  return lines(found).map((line) => line.replaceAll(/127\.0\.0\.1:\d+/g, 'HOST'));
}

/** @param type of the token that the provider grants. */
async function granted(type: 'Bearer' | 'DPoP', dpop: Partial<DpopConfig> = {}, key?: string) {
  const proofs: unknown[] = [];
  const tokenUrl = `${await serve((request, response) => {
    proofs.push(request.headers['dpop']);
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`{"access_token":"TOKEN","token_type":"${type}","expires_in":300}`);
  })}/token`;
  const { directory } = await mountSecret({
    client_id: 'shop',
    client_secret: 'S3CRET',
    ...(key === undefined ? {} : { key }),
  });
  const settings = { allowsBearer: false, ...dpop };
  const config = credentialConfig({ directory, tokenUrl, dpop: settings });
  const { findings, token } = await checkCredential(config, examination());
  const text = textOf(findings);
  expect(text.join()).not.toMatch(/TOKEN|eyJ/);
  return {
    token,
    proofs,
    text,
    ofToken: text.filter((line) => /^\w+ credential default: token: /.test(line)),
  };
}

const claimsOf = ({ headers }: IncomingMessage) => decodeJwt(headers['dpop'] as string);

/** @param answer is given requests with a token. */
async function asked(answer: RequestListener): Promise<string[]> {
  const { token } = await granted('DPoP');
  const url = await serve((request, response) => {
    if (request.headers.authorization === undefined) response.writeHead(401).end();
    else answer(request, response);
  });
  const config = await loadConfig({
    'token-url': { key: '--token-url', text: 'https://sso.example.com/token' },
    upstream: { key: '--upstream', text: `${url}/v2` },
  });
  const [upstream] = upstreamsOf(config, new Map([['default', '/health?full=1']]));
  if (upstream === undefined) throw new Error('there is no upstream');
  const text = textOf(await checkUpstream(upstream, config, token, examination()));
  expect(text.join()).not.toMatch(/TOKEN|eyJ/);
  return text;
}

const REQUEST = 'route default: upstream request: GET http://HOST/v2/health?…';

it('a token is asked for with a proof, and its key is named', async () => {
  const { ofToken, proofs } = await granted('DPoP');
  expect(ofToken).toEqual([
    expect.stringMatching(/^ok .*: granted by HOST, lives 300 s, bound to the key [\w-]{43}$/),
  ]);
  expect(proofs).toHaveLength(1);
  expect(decodeProtectedHeader(proofs[0] as string)).toMatchObject({ typ: 'dpop+jwt', alg: 'ES256' });
});

it('the upstream is asked with token and proof, once more with the nonce that it wants', async () => {
  const seen: unknown[] = [];
  const text = await asked((request, response) => {
    const { htm, htu, nonce, ath } = claimsOf(request);
    seen.push({ authorization: request.headers.authorization, htm, htu, nonce, ath: typeof ath });
    if (nonce === 'n1') response.end();
    else
      response
        .writeHead(401, { 'dpop-nonce': 'n1', 'www-authenticate': 'DPoP error="use_dpop_nonce"' })
        .end();
  });
  const htu = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v2\/health$/);
  const each = { authorization: 'DPoP TOKEN', htm: 'GET', htu, ath: 'string' };
  expect(seen).toEqual([
    { ...each, nonce: undefined },
    { ...each, nonce: 'n1' },
  ]);
  expect(text.slice(1)).toEqual([`ok ${REQUEST} without a token: 401`, `ok ${REQUEST} with the token: 200`]);
});

it.each([
  [
    'invalid_dpop_proof',
    'compare the clocks of both, and the URL by which the upstream knows itself with that of this request: the proof names it',
  ],
  [
    'use_dpop_nonce',
    'see whether its 401 has one field DPoP-Nonce, and whether it takes the next request with that nonce',
  ],
])('an upstream that refuses the proof: %s', async (error, remedy) => {
  const text = await asked((_request, response) => {
    response.writeHead(401, { 'www-authenticate': `DPoP error="${error}", algs="ES256"` }).end();
  });
  expect(text.at(-1)).toBe(`failure ${REQUEST} with the token: 401 ${error} → ${remedy}`);
});

it('an upstream that knows no bound tokens', async () => {
  const text = await asked((_request, response) => {
    response.writeHead(401, { 'www-authenticate': 'Bearer realm="DPoP", error="invalid_token"' }).end();
  });
  expect(text.at(-1)).toBe(
    `failure ${REQUEST} with the token: 401 invalid_token → make sure that the upstream takes DPoP-bound tokens: its WWW-Authenticate has no scheme DPoP`,
  );
});

it('a Bearer token is refused, and the setting that takes it is named', async () => {
  const { ofToken, token } = await granted('Bearer');
  expect(token).toBeUndefined();
  expect(ofToken).toEqual([expect.stringMatching(/^failure .*Bearer.*dpop\.allowBearer/)]);
});

it('a Bearer token that is let pass is a warning', async () => {
  const { ofToken, token } = await granted('Bearer', { allowsBearer: true });
  expect(token).toBe('TOKEN');
  expect(ofToken).toEqual([
    'ok credential default: token: granted by HOST, lives 300 s',
    'warning credential default: token: its type is Bearer: whoever steals it can use it → have the provider bind the tokens of this client (DPoP)',
  ]);
});

it.each([
  [['ES256'], false],
  [[], true],
  [undefined, true],
])('an issuer that lists %s as algorithms for proofs', async (algorithms, isTold) => {
  const issuerUrl: string = await serve((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const metadata = {
      issuer: issuerUrl,
      token_endpoint: `${issuerUrl}/token`,
      dpop_signing_alg_values_supported: algorithms,
    };
    const token = { access_token: 'TOKEN', token_type: 'DPoP', expires_in: 300 };
    response.end(JSON.stringify(request.url === '/token' ? token : metadata));
  });
  const { directory } = await mountSecret({ client_id: 'shop', client_secret: 'S3CRET' });
  const config = credentialConfig({
    directory,
    issuerUrl,
    tokenUrl: undefined,
    dpop: { allowsBearer: false },
  });
  const { findings } = await checkCredential(config, examination());
  const warnings = textOf(findings).filter((line) => /dpop_signing_alg/.test(line));
  const warning =
    'warning credential default: issuer: the issuer lists no algorithm for proofs (dpop_signing_alg_values_supported), and proofOfPossession is dpop → turn DPoP on at the provider';
  expect(warnings).toEqual(isTold ? [warning] : []);
});

it.each([
  [undefined, /\/key does not exist → the Secret must have the key key; it has client_id, client_secret$/],
  [
    'no key',
    /\/key is not an unencrypted private key for dpop.keyFile, in PEM or as a single JWK: EC on P-256 .* → mend the Secret$/,
  ],
])('a mounted key that cannot be used is named, with what was expected: %s', async (key, expected) => {
  const { text, proofs, token } = await granted('DPoP', { keyFile: 'key' }, key);
  expect({ token, proofs }).toEqual({ token: undefined, proofs: [] });
  const [failure] = text.filter((line) => line.startsWith('failure'));
  expect(failure).toMatch(expected);
});
