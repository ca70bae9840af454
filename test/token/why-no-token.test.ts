import { expect, it } from 'vitest';
import { connectionRemedy, whyNoToken } from '../../src/token/why-no-token.ts';

const CONFIG = { tokenUrl: 'https://sso.example.com/token?tenant=a', directory: '/secret' };

it.each([
  ['ENOTFOUND', 'DNS'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'tls.caFile'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls.caFile'],
  ['CERT_HAS_EXPIRED', 'renew its certificate'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'a host that is in'],
  ['no whole answer within 10000 ms', 'NetworkPolicies'],
  ['expires_in is 0: the token has ended; if it has no end, …', 'ask again in a second'],
  ['status 404', 'the realm'],
  ['status 503', 'look at the provider'],
  ['something else', 'the URL of a token endpoint'],
])('what to do follows from the failure: %s', (detail, remedy) => {
  const { code, message } = whyNoToken(CONFIG, { lastFailure: { result: 'unavailable', detail } });

  expect(code).toBe('provider_unavailable');
  expect(message).toContain(`https://sso.example.com/token?… gave no token (${detail}): `);
  expect(message).toContain(remedy);
});

it.each([
  ['status 401 invalid_client', 'compare the Secret that is mounted at /secret with the client there'],
  ['status 400 invalid_scope', 'ask for a scope that the client may have there'],
  ['status 400 invalid_target', 'ask for an audience or resource that the client may have there'],
  ['status 400 unauthorized_client', 'allow the client the grant there'],
  [
    'status 400 unauthorized_client: no profile gives this service account such a credential',
    "have the ClusterTokenProfile admit the pod's namespace and service account",
  ],
  [
    'status 401 invalid_client: the service account token is not taken',
    "look at the broker's log, which says why",
  ],
])('and from the refusal: %s', (detail, remedy) => {
  expect(whyNoToken(CONFIG, { lastFailure: { result: 'rejected', detail } })).toEqual({
    code: 'credentials_rejected',
    message: `https://sso.example.com/token?… rejected the client (${detail}): ${remedy}`,
  });
});

it('a connection that fails for a reason of its own has no remedy of ours', () => {
  expect(connectionRemedy('ECONNREFUSED')).toBe('check host and port, and NetworkPolicies');
  expect(connectionRemedy('EPROTO')).toBeUndefined();
});

it('a token that is mounted itself is for whoever mounts it to mend', () => {
  const { code, message } = whyNoToken(
    { directory: '/secret' },
    { unusable: '/secret/token does not exist' },
  );
  expect(code).toBe('configuration');
  expect(message).toBe(
    'the token that is mounted at /secret cannot be used (/secret/token does not exist): mend the Secret',
  );
  const ended = { result: 'invalid_response', detail: 'its exp is past: replace it' } as const;
  expect(whyNoToken({ directory: '/secret' }, { lastFailure: ended }).message).toContain('its exp is past');
});

it.each([
  ['no metadata of the issuer: https://sso/x: status 404', 'check issuerUrl, or set tokenUrl'],
  [
    'the metadata at x is that of y, not of z: issuerUrl has to be the same',
    'set issuerUrl to what the provider calls',
  ],
])('an issuer that is not found by its metadata: %s', (detail, remedy) => {
  const config = { issuerUrl: 'https://sso/realms/dx', directory: '/secret' };
  const { code, message } = whyNoToken(config, { lastFailure: { result: 'invalid_response', detail } });
  expect(code).toBe('provider_unavailable');
  expect(message).toContain('https://sso/realms/dx gave no token');
  expect(message).toContain(remedy);
});
