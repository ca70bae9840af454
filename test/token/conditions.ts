/** A credential in each state. Whoever shows a state shows what `credentialCondition` says of these. */

import type { CredentialState } from '../../src/token/condition.ts';
import type { TokenSnapshot } from '../../src/token/grant-report.ts';
import { credentialConfig } from '../support/credential-config.ts';

const MINUTE_MS = 60_000;
export const NOW_MS = Date.parse('2030-01-01T12:00:00.250Z');
const ago = (minutes: number) => NOW_MS - minutes * MINUTE_MS;

export const CONFIG = credentialConfig({
  name: 'crm',
  tokenUrl: 'https://sso.example.com/token?tenant=a',
  directory: '/secret',
  scope: 'read write',
});

const READY: TokenSnapshot = {
  name: 'crm',
  required: true,
  tokens: { kind: 'held' },
  openedAtMs: ago(120),
  tokenUrl: 'https://sso.example.com/token?…',
  ready: true,
  obtainedFirstToken: true,
  requestedAtMs: ago(1),
  expiresAtMs: ago(-4),
  renewalAtMs: ago(-3),
  renewalReason: 'scheduled',
  grantInFlight: false,
  consecutiveFailures: 0,
  lastFailure: undefined,
  credentials: { state: 'loaded', detail: undefined, previousInUse: false, watchedBy: 'notification' },
  failingSinceMs: undefined,
};

const NEW = {
  ready: false,
  obtainedFirstToken: false,
  openedAtMs: ago(1),
  requestedAtMs: undefined,
  expiresAtMs: undefined,
} as const;

const failed = (result: 'rejected' | 'unavailable' | 'invalid_response', detail: string) => ({
  consecutiveFailures: 3,
  failingSinceMs: ago(12),
  lastFailure: { result, detail, at: { monotonicMs: 0, wallMs: ago(1) } },
});
const REJECTED = failed('rejected', 'status 401 invalid_client');
const EXPIRED = { ready: false, expiresAtMs: ago(5) };
const MISSING = {
  state: 'missing',
  detail: '/secret/client_secret does not exist',
  unusableSinceMs: ago(7),
} as const;
const EXCHANGED = { tokens: { kind: 'exchanged', refusesAll: true }, expiresAtMs: undefined } as const;

interface Case {
  readonly token: TokenSnapshot;
  readonly state: CredentialState;
  readonly level: 'ok' | 'warning' | 'failing';
  readonly sentence: string;
  readonly next?: string;
  readonly runbook?: string;
}

type Changes = Partial<Omit<TokenSnapshot, 'credentials'>> & {
  readonly credentials?: Partial<TokenSnapshot['credentials']>;
};

const token = ({ credentials, ...changes }: Changes): TokenSnapshot => ({
  ...READY,
  ...changes,
  credentials: { ...READY.credentials, ...credentials },
});

const SSO = 'https://sso.example.com/token?…';
const COMPARE = 'compare the Secret that is mounted at /secret with the client there';

export const CASES: Readonly<Record<string, Case>> = {
  'a token is held': {
    token: token({}),
    state: 'ready',
    level: 'ok',
    sentence: 'credential crm has a token',
  },
  'the first token is awaited': {
    token: token({ ...NEW, grantInFlight: true }),
    state: 'starting',
    level: 'warning',
    sentence: `credential crm has waited for its first token since 2030-01-01 11:59:00 UTC (60 s): ${SSO} has not answered yet`,
    next: 'the sidecar is asking the provider now',
  },
  'the provider has never answered': {
    token: token({ ...NEW, ...failed('unavailable', 'ECONNREFUSED') }),
    state: 'no_token',
    level: 'failing',
    sentence: `credential crm has had no token since 2030-01-01 11:59:00 UTC (60 s): ${SSO} gave no token (ECONNREFUSED); check host and port, and NetworkPolicies`,
    next: 'requests that need it get 503; the sidecar asks again',
    runbook: 'TokenSidecarTokenUnavailable',
  },
  'the provider has stopped, and the token has ended': {
    token: token({ ...EXPIRED, ...failed('unavailable', 'ECONNREFUSED'), lastAnswerAtMs: ago(13) }),
    state: 'no_token',
    level: 'failing',
    sentence: `credential crm has had no token since 2030-01-01 11:55:00 UTC (5 min): ${SSO} gave no token (ECONNREFUSED); it last answered 2030-01-01 11:47:00 UTC (13 min ago); look whether the provider runs, and at what lies between`,
    next: 'requests that need it get 503; the sidecar asks again',
    runbook: 'TokenSidecarTokenUnavailable',
  },
  'the pod can do without': {
    token: token({ ...EXPIRED, ...failed('unavailable', 'status 503'), required: false }),
    state: 'no_token',
    level: 'warning',
    sentence: `credential crm has had no token since 2030-01-01 11:55:00 UTC (5 min): ${SSO} gave no token (status 503); look at the provider`,
    next: 'requests that need it get 503; the sidecar asks again',
    runbook: 'TokenSidecarTokenUnavailable',
  },
  'the client is rejected': {
    token: token({ ...EXPIRED, ...REJECTED }),
    state: 'no_token',
    level: 'failing',
    sentence: `credential crm has had no token since 2030-01-01 11:55:00 UTC (5 min): ${SSO} rejected the client (status 401 invalid_client); ${COMPARE}`,
    next: 'requests that need it get 503; the sidecar asks again',
    runbook: 'TokenSidecarCredentialsRejected',
  },
  'there is no Secret': {
    token: token({ ...NEW, renewalAtMs: undefined, credentials: MISSING }),
    state: 'no_token',
    level: 'failing',
    sentence: `credential crm has had no token since 2030-01-01 11:59:00 UTC (60 s): no token was asked of ${SSO}, because /secret/client_secret does not exist; mend the Secret that is mounted at /secret`,
    next: 'requests that need it get 503; the sidecar asks again once the mounted Secret has changed',
    runbook: 'TokenSidecarSecretUnusable',
  },
  'renewal fails': {
    token: token(failed('unavailable', 'ENOTFOUND')),
    state: 'not_renewed',
    level: 'warning',
    sentence: `credential crm has had no new token since 2030-01-01 11:48:00 UTC (12 min): ${SSO} gave no token (ENOTFOUND); check the host's name and the pod's DNS`,
    next: 'requests get the token in hand, which ends',
    runbook: 'TokenSidecarRefreshFailing',
  },
  'a scope is refused': {
    token: token(failed('rejected', 'status 400 invalid_scope')),
    state: 'not_renewed',
    level: 'warning',
    sentence: `credential crm has had no new token since 2030-01-01 11:48:00 UTC (12 min): ${SSO} refused the scope "read write" (status 400 invalid_scope); ask for a scope that the client may have there`,
    next: 'requests get the token in hand, which ends',
    runbook: 'TokenSidecarCredentialsRejected',
  },
  'a wrong Secret is mounted, and the token in hand is that of the previous one': {
    token: token({ ...REJECTED, credentials: { rejectedSinceMs: ago(30), previousServes: true } }),
    state: 'secret_rejected',
    level: 'warning',
    sentence: `the mounted Secret of credential crm has been rejected since 2030-01-01 11:30:00 UTC (30 min): ${SSO} rejected the client (status 401 invalid_client); ${COMPARE}`,
    next: 'requests get tokens by the previous one, while the provider takes it',
    runbook: 'TokenSidecarCredentialsRejected',
  },
  'a wrong Secret is mounted, and the previous one has just got a token': {
    token: token({
      ...REJECTED,
      consecutiveFailures: 0,
      failingSinceMs: undefined,
      credentials: { rejectedSinceMs: ago(30), previousServes: true, previousInUse: true },
    }),
    state: 'secret_rejected',
    level: 'warning',
    sentence: `the mounted Secret of credential crm has been rejected since 2030-01-01 11:30:00 UTC (30 min): ${SSO} rejected the client (status 401 invalid_client); ${COMPARE}`,
    next: 'requests get tokens by the previous one, while the provider takes it',
    runbook: 'TokenSidecarCredentialsRejected',
  },
  'a Secret whose client may not have the scope is mounted, and the previous one has just got a token': {
    token: token({
      ...failed('rejected', 'status 400 invalid_scope'),
      consecutiveFailures: 0,
      failingSinceMs: undefined,
      credentials: { rejectedSinceMs: ago(30), previousServes: true, previousInUse: true },
    }),
    state: 'secret_rejected',
    level: 'warning',
    sentence: `the mounted Secret of credential crm has been rejected since 2030-01-01 11:30:00 UTC (30 min): ${SSO} refused the scope "read write" (status 400 invalid_scope); ask for a scope that the client may have there`,
    next: 'requests get tokens by the previous one, while the provider takes it',
    runbook: 'TokenSidecarCredentialsRejected',
  },
  'the client is rejected while a token is held, and there is no other Secret': {
    token: token({ ...REJECTED, credentials: { rejectedSinceMs: ago(12) } }),
    state: 'secret_rejected',
    level: 'warning',
    sentence: `the mounted Secret of credential crm has been rejected since 2030-01-01 11:48:00 UTC (12 min): ${SSO} rejected the client (status 401 invalid_client); ${COMPARE}`,
    next: 'requests get the token in hand, which ends',
    runbook: 'TokenSidecarCredentialsRejected',
  },
  'the Secret has become unusable': {
    token: token({ credentials: MISSING }),
    state: 'secret_unusable',
    level: 'warning',
    sentence:
      'the mounted Secret of credential crm has been unusable since 2030-01-01 11:53:00 UTC (7 min): /secret/client_secret does not exist; mend the Secret that is mounted at /secret',
    next: 'requests get tokens by what was read before',
    runbook: 'TokenSidecarSecretUnusable',
  },
  'tokens of requests are exchanged': {
    token: token({ ...EXCHANGED, tokens: { kind: 'exchanged', refusesAll: false } }),
    state: 'ready',
    level: 'ok',
    sentence: 'credential crm exchanges the tokens of requests',
  },
  'no token of a request is exchanged': {
    token: token({ ...EXCHANGED, ...failed('unavailable', 'status 503') }),
    state: 'not_exchanged',
    level: 'failing',
    sentence: `credential crm has exchanged no token of a request since 2030-01-01 11:48:00 UTC (12 min): ${SSO} gave no token (status 503); look at the provider`,
    next: 'such requests get 503; the token of the next one is tried',
    runbook: 'TokenSidecarRefreshFailing',
  },
  'some tokens of requests are not exchanged': {
    token: token({
      tokens: { kind: 'exchanged', refusesAll: false },
      ...failed('unavailable', 'status 503'),
    }),
    state: 'not_exchanged',
    level: 'warning',
    sentence: `credential crm has exchanged no token of a request since 2030-01-01 11:48:00 UTC (12 min): ${SSO} gave no token (status 503); look at the provider`,
    next: 'such requests get 503; the token of the next one is tried',
    runbook: 'TokenSidecarRefreshFailing',
  },
  'tokens of requests wait for a Secret': {
    token: token({ ...EXCHANGED, ...NEW, credentials: MISSING }),
    state: 'not_exchanged',
    level: 'failing',
    sentence: `credential crm has exchanged no token of a request since 2030-01-01 11:59:00 UTC (60 s): no token was asked of ${SSO}, because /secret/client_secret does not exist; mend the Secret that is mounted at /secret`,
    next: 'such requests get 503 until the mounted Secret can be used',
    runbook: 'TokenSidecarSecretUnusable',
  },
};
