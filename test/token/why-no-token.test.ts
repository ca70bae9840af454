import { expect, it } from 'vitest';
import { connectionRemedy, whyNoToken } from '../../src/token/why-no-token.ts';

const CONFIG = { tokenUrl: 'https://sso.example.com/token?tenant=a', directory: '/secret', scope: 'a b' };
const SSO = 'https://sso.example.com/token?…';

const advice = (result: 'unavailable' | 'invalid_response', detail: string) => {
  const why = whyNoToken(CONFIG, { lastFailure: { result, detail } });
  expect(why).toMatchObject({ code: 'provider_unavailable', reason: `${SSO} gave no token (${detail})` });
  return why.advice;
};

it.each([
  ['ENOTFOUND', 'DNS'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls.caFile'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls.caFile'],
  ['CERT_HAS_EXPIRED', 'renew its certificate'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'a host that is in'],
  ['ECONNREFUSED', 'NetworkPolicies'],
  ['no whole answer within 10 s', 'NetworkPolicies'],
  [
    'the egress proxy proxy.corp:3128 cannot be reached: ENOTFOUND',
    'look at egressProxy.url: check the name',
  ],
  [
    'the egress proxy proxy.corp:3128 cannot be reached: ECONNREFUSED',
    'look at egressProxy.url: check host and port',
  ],
  ['the egress proxy proxy.corp:3128 answered CONNECT with 407', 'look at egressProxy.credentialsDir'],
  ['the egress proxy proxy.corp:3128 answered CONNECT with 502', 'look at egressProxy.url and at what'],
  ['status 429 slow_down', 'look at the provider'],
  ['status 503', 'look at the provider'],
])('what to do follows from the silence: %s', (detail, expected) => {
  expect(advice('unavailable', detail)).toContain(expected);
});

it.each([
  ['status 302', 'the URL that it leads to'],
  ['status 404', 'the realm'],
  ['status 400', 'in front of the provider'],
  ['status 204', 'in front of the provider'],
  ['status 200 with an empty body where a JSON object was expected', 'whether a login page or proxy answers'],
  ['status 200 with text/html where a JSON object was expected', 'whether a login page or proxy answers'],
  ['access_token is missing', 'a token endpoint answers with an access_token'],
  ['access_token is longer than 65536 bytes', 'less into the token'],
  [
    'token_type is MAC: every request with such a token needs a proof, which the sidecar does not make',
    'Bearer',
  ],
  ['token_type is DPoP: every request with such a token needs a proof', 'proofOfPossession: dpop'],
  ['token_type is Bearer, not DPoP: the provider has not bound the token to the key', 'dpop.allowBearer'],
  ["the token has already ended: its exp is past by the answer's own Date", "the provider's clock"],
  [
    'expires_in is missing and the exp of the token itself is past or makes no sense',
    "compare the node's clock with the provider's, and raise the life of the client's tokens",
  ],
  [
    'expires_in is 0: the token has ended; if it has no end, set renewal.zeroLifetime: endless',
    "raise the life of the client's tokens",
  ],
  ['expires_in is not a number of seconds from 1', "raise the life of the client's tokens"],
  ['the metadata at x is that of y, not of z: issuerUrl has to be the same', 'to what the provider calls'],
  ['the metadata at x is no JSON object', 'check issuerUrl'],
  ['the metadata at x names no token_endpoint', 'set tokenUrl'],
  ['the metadata at x names the token_endpoint y: it is no URL', 'set tokenUrl'],
  ['no metadata of the issuer: https://sso/x: status 404', 'check issuerUrl, or set tokenUrl'],
  ['an answer of more than 262144 bytes', "the URL's path"],
  ['not an HTTP answer (HPE_INVALID_CONSTANT)', 'scheme and port'],
  ['a body that is not gzip, though its Content-Encoding says so', 'in front of the provider'],
])('what to do follows from an unusable answer: %s', (detail, expected) => {
  expect(advice('invalid_response', detail)).toContain(expected);
});

it.each([
  ['unavailable', 'ECONNRESET'],
  ['unavailable', 'EPROTO'],
  [
    'invalid_response',
    'access_token has a character that no header can carry: a space, a control, or one beyond ASCII',
  ],
  [
    'invalid_response',
    'token_type is missing, not Bearer; if the token is used like one, set tokenType: any',
  ],
] as const)('no advice is given if none surely fits: %s, %s', (result, detail) => {
  expect(advice(result, detail)).toBeUndefined();
});

it('a provider that answered before is not looked for elsewhere', () => {
  const lastAnswer = { atMs: Date.parse('2030-01-01T00:00:00Z'), nowMs: Date.parse('2030-01-01T00:02:30Z') };
  const lastFailure = { result: 'unavailable', detail: 'ECONNREFUSED' } as const;
  expect(whyNoToken(CONFIG, { lastFailure, lastAnswer })).toMatchObject({
    reason: `${SSO} gave no token (ECONNREFUSED); it last answered 2030-01-01 00:00:00 UTC (3 min ago)`,
    advice: 'look whether the provider runs, and at what lies between',
  });
});

const refused = (detail: string, more: Partial<Parameters<typeof whyNoToken>[1]> = {}) =>
  whyNoToken(CONFIG, { lastFailure: { result: 'rejected', detail }, ...more });

it.each([
  [
    '401 invalid_client',
    'rejected the client',
    'compare the Secret that is mounted at /secret with the client there',
  ],
  ['401', 'rejected the client', 'compare the Secret'],
  [
    '401 unauthorized_client: Invalid client or Invalid client credentials',
    'rejected the client',
    'compare the Secret',
  ],
  // Entra.
  [
    "400 unauthorized_client: AADSTS700016: Application with identifier 'x' was not found",
    'rejected the client',
    'compare the Secret',
  ],
  // Auth0.
  ['401 access_denied: Unauthorized', 'rejected the client', 'compare the Secret'],
  [
    "400 unauthorized_client: The client is not allowed to use authorization grant 'client_credentials'",
    'does not allow the client this grant',
    'allow the client the grant there',
  ],
  ['400 unauthorized_client', 'does not allow the client this grant', 'allow the client the grant there'],
  ['400 unsupported_grant_type', 'does not allow the client this grant', 'allow the client the grant there'],
  ['400 invalid_scope', 'refused the scope "a b"', 'ask for a scope that the client may have there'],
  ['400 invalid_target', 'refused the audience or resource', 'ask for an audience or resource'],
  [
    '400 invalid_grant',
    'refused the assertion or token that was presented',
    'compare its issuer, audience and key',
  ],
  ['403 access_denied', 'denied access', 'allow the client there'],
  ['403', 'refused the request', 'firewalls in front of the provider'],
  ['400 invalid_request', 'refused the request', undefined],
  [
    '400 unauthorized_client: no profile gives this service account such a credential',
    'gives the pod no such credential',
    "have the ClusterTokenProfile admit the pod's namespace and service account",
  ],
  [
    '401 invalid_client: the service account token is not taken',
    "did not take the pod's token",
    "look at the broker's log, which says why",
  ],
])('what was refused is named: %s', (said, what, expected) => {
  const { code, reason, advice: told, clientRejected } = refused(`status ${said}`);
  expect(code).toBe('credentials_rejected');
  expect(reason).toBe(`${SSO} ${what} (status ${said})`);
  if (expected === undefined) expect(told).toBeUndefined();
  else expect(told).toContain(expected);
  expect(clientRejected).toBe(what === 'rejected the client');
});

it.each([
  // Keycloak.
  'status 400 invalid_request: DPoP proof is missing',
  'status 400 invalid_dpop_proof',
  'status 400 use_dpop_nonce: nonce is required',
])('a provider that wants a proof is met by a setting, which is not said if it is set: %s', (detail) => {
  const happened = { lastFailure: { result: 'rejected', detail } } as const;
  expect(whyNoToken(CONFIG, happened)).toEqual({
    code: 'credentials_rejected',
    reason: `${SSO} binds the client's tokens to a key (${detail})`,
    advice: 'set proofOfPossession: dpop',
    clientRejected: false,
  });
  const { advice: told } = whyNoToken({ ...CONFIG, dpop: { allowsBearer: false } }, happened);
  expect(told).not.toBe('set proofOfPossession: dpop');
});

it.each(['invalid_dpop_proof', 'use_dpop_nonce'])(
  'a refused proof is not taken for a wrong secret: 401 %s',
  (error) => {
    const lastFailure = { result: 'rejected', detail: `status 401 ${error}` } as const;
    expect(whyNoToken({ ...CONFIG, dpop: { allowsBearer: false } }, { lastFailure })).toMatchObject({
      advice: expect.stringContaining('the clocks'),
      clientRejected: false,
    });
  },
);

it('a key that the provider does not know is shown by what it may be known by', () => {
  const clientKey = { keyId: 'orders-2030', thumbprint: 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs' };
  expect(refused('status 401 invalid_client', { clientKey })).toMatchObject({
    reason: `${SSO} rejected the client (status 401 invalid_client); it is signed for by the key with kid orders-2030 and thumbprint ${clientKey.thumbprint}`,
    advice: 'register that key for the client there, or mount the one that is registered',
  });
  const { reason } = refused('status 401 invalid_client', {
    clientKey: { ...clientKey, keyId: clientKey.thumbprint },
  });
  expect(reason).toContain(`the key with kid and thumbprint ${clientKey.thumbprint}`);
  expect(refused('status 400 invalid_scope', { clientKey }).reason).not.toContain('key');
});

it('a connection that fails for a reason of its own has no remedy of ours', () => {
  expect(connectionRemedy('ECONNREFUSED')).toBe('check host and port, and NetworkPolicies');
  expect(connectionRemedy('EPROTO')).toBeUndefined();
});

it('a token that is mounted itself is for whoever mounts it to mend', () => {
  expect(whyNoToken({ directory: '/secret' }, { unusable: '/secret/token does not exist' })).toMatchObject({
    code: 'configuration',
    reason: 'the token that is mounted at /secret cannot be used (/secret/token does not exist)',
    advice: 'mend the Secret',
  });
  const ended = { result: 'invalid_response', detail: 'its exp is past' } as const;
  expect(whyNoToken({ directory: '/secret' }, { lastFailure: ended }).advice).toContain('set the clock');
});
