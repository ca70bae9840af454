import { describe, expect, it } from 'vitest';
import { type FoundCredential, judge, levelOf } from '../../../src/sidecar/status/verdict.ts';

type FoundRoute = Parameters<typeof judge>[0]['routes'][number];

const OPENED = '2030-01-01T00:00:00.000Z';
const SINCE = '2030-01-01T03:04:05.000Z';
const SOON = '2030-01-01T03:05:00.000Z';

const CREDENTIAL: FoundCredential = {
  name: 'crm',
  tokenUrl: 'https://sso.example.com/token',
  issuerUrl: undefined,
  required: true,
  tokens: 'held',
  refusesAll: false,
  openedAt: OPENED,
  ready: true,
  obtainedFirstToken: true,
  why: undefined,
  requestedAt: OPENED,
  expiresAt: SINCE,
  expiresInSeconds: 60,
  nextGrantAt: SOON,
  nextGrantReason: 'scheduled',
  grantInFlight: false,
  consecutiveFailures: 0,
  failingSince: undefined,
  lastFailure: undefined,
  mountedCredentials: { state: 'loaded', detail: undefined, previousInUse: false, watchedBy: 'notification' },
  history: [],
  timeline: [],
};

function judged(
  credentials: readonly Partial<FoundCredential>[] = [{}],
  routes: readonly FoundRoute[] = [],
  draining = false,
) {
  return judge({
    draining,
    credentials: credentials.map((each) => ({ ...CREDENTIAL, ...each })),
    routes,
    others: [],
  });
}

const REJECTED: Partial<FoundCredential> = {
  ready: false,
  consecutiveFailures: 3,
  lastFailure: { at: SINCE, result: 'rejected', detail: 'invalid_client' },
  why: 'https://sso.example.com/token rejected the client (invalid_client): compare the Secret.',
};

describe('credentials', () => {
  it('that have tokens are well', () => {
    expect(judged()).toEqual({
      level: 'ok',
      sentence: 'All is well: credential crm has a token.',
      problems: [],
    });
    expect(judged([{}, { name: 'b' }]).sentence).toBe('All is well: each of 2 credentials has a token.');
  });

  it('without a token: what, since when, why, and what is next', () => {
    expect(judged([REJECTED])).toMatchObject({
      level: 'failing',
      sentence: `Credential crm has had no token since ${SINCE}. https://sso.example.com/token rejected the client (invalid_client): compare the Secret. Requests that need it get 503; the sidecar asks again at ${SOON}.`,
      problems: [{ runbook: 'TokenSidecarCredentialsRejected' }],
    });
  });

  it('that are not required are a warning', () => {
    expect(judged([{ ...REJECTED, required: false }]).level).toBe('warning');
  });

  it.each<[string, Partial<FoundCredential>, string]>([
    [
      'being asked for',
      { ...REJECTED, grantInFlight: true },
      'get 503; the sidecar is asking the provider now.',
    ],
    [
      'nothing planned',
      { ...REJECTED, nextGrantAt: undefined },
      'get 503; the sidecar asks again once the mounted Secret has changed.',
    ],
  ])('what is next: %s', (_, credential, sentence) => {
    expect(judged([credential]).sentence).toContain(sentence);
  });

  it('that wait for their first token', () => {
    const waiting = { ready: false, obtainedFirstToken: false, expiresAt: undefined };
    expect(judged([waiting])).toMatchObject({
      level: 'warning',
      problems: [{ what: 'credential crm has waited for its first token', since: OPENED }],
    });
  });

  it('whose renewal fails keep what they have, until it ends', () => {
    expect(judged([{ consecutiveFailures: 2, failingSince: SINCE }])).toMatchObject({
      level: 'warning',
      problems: [
        { since: SINCE, next: 'requests get the token in hand, which ends', nextAt: CREDENTIAL.expiresAt },
      ],
    });
  });

  it('whose newest secret is rejected, or cannot be read', () => {
    const { mountedCredentials } = CREDENTIAL;
    const previous = {
      mountedCredentials: { ...mountedCredentials, previousInUse: true, previousInUseSince: SINCE },
    };
    expect(judged([previous]).sentence).toContain('The one before it is in use');
    expect(judged([previous]).problems).toMatchObject([{ since: SINCE }]);
    const unusable = {
      mountedCredentials: { ...mountedCredentials, detail: 'client_secret is empty', unusableSince: SINCE },
    };
    expect(judged([unusable]).sentence).toContain(`cannot be used: client_secret is empty since ${SINCE}.`);
  });
});

describe('the runbook is the one of the alert that knows most of the cause', () => {
  const away = { at: SINCE, result: 'unavailable', detail: 'ECONNREFUSED' } as const;
  const rejected = { at: SINCE, result: 'rejected', detail: 'invalid_client' } as const;
  const unusable = { ...CREDENTIAL.mountedCredentials, detail: 'client_secret is empty' };
  it.each<[string, Partial<FoundCredential>, string]>([
    [
      'no token, provider away',
      { ready: false, consecutiveFailures: 1, lastFailure: away },
      'TokenUnavailable',
    ],
    ['no token, client rejected', REJECTED, 'CredentialsRejected'],
    ['no token, no Secret', { ready: false, mountedCredentials: unusable }, 'SecretUnusable'],
    ['a token, provider away', { consecutiveFailures: 1, lastFailure: away }, 'RefreshFailing'],
    ['a token, client rejected', { consecutiveFailures: 1, lastFailure: rejected }, 'CredentialsRejected'],
    ['a token, no Secret', { mountedCredentials: unusable }, 'SecretUnusable'],
  ])('%s', (_, credential, runbook) => {
    expect(judged([credential]).problems).toEqual([
      expect.objectContaining({ runbook: `TokenSidecar${runbook}` }),
    ]);
  });
});

describe('credentials whose tokens are exchanged for those of requests', () => {
  const exchanged = { tokens: 'exchanged', expiresAt: undefined, nextGrantAt: undefined } as const;
  const failing = {
    ...exchanged,
    consecutiveFailures: 1,
    failingSince: SINCE,
    lastFailure: { at: SINCE, result: 'unavailable', detail: 'ECONNREFUSED' },
    why: 'It is away.',
  };

  it('are well without one', () => {
    expect(judged([exchanged]).sentence).toBe(
      'All is well: credential crm exchanges the tokens of requests.',
    );
    expect(judged([{ ...exchanged, name: 'b' }, {}]).sentence).toBe(
      'All is well: each of 2 credentials has a token or exchanges those of requests.',
    );
  });

  it.each([
    [true, true, 'failing'],
    [true, false, 'warning'],
    [false, true, 'warning'],
  ])('that fail for all requests (%s), being required (%s): %s', (refusesAll, required, level) => {
    expect(judged([{ ...failing, refusesAll, required }])).toMatchObject({
      level,
      sentence: `Credential crm has exchanged no token of a request since ${SINCE}. It is away. Such requests get 503; the token of the next one is tried.`,
    });
  });

  it('without usable credentials', () => {
    const mountedCredentials = { ...CREDENTIAL.mountedCredentials, detail: 'x' };
    expect(
      judged([{ ...exchanged, ready: false, obtainedFirstToken: false, mountedCredentials }]),
    ).toMatchObject({
      level: 'failing',
      problems: [{ since: OPENED, next: 'such requests get 503 until the mounted Secret can be used' }],
    });
  });
});

describe('routes', () => {
  const lastMinute = (minute: Partial<NonNullable<FoundRoute['lastMinute']>>): FoundRoute => ({
    name: 'api',
    lastMinute: {
      requests: 100,
      errorsByCode: new Map(),
      serverErrors: 0,
      refusedTokens: 0,
      failingSinceMs: Date.parse(SINCE),
      ...minute,
    },
  });

  it.each([
    [9, 'ok'],
    [10, 'failing'],
  ])('%d of 100 requests that fail: %s', (failed, level) => {
    const errorsByCode = new Map([['upstream_unreachable', failed]]);
    const verdict = judged([{}], [lastMinute({ errorsByCode, serverErrors: failed })]);
    expect(verdict.level).toBe(level);
    expect(levelOf(verdict, 'route', 'api')).toBe(level);
    expect(levelOf(verdict, 'route', 'other')).toBe('ok');
    if (level === 'failing') {
      expect(verdict.sentence).toContain(
        '10 of 100 requests of the last minute failed (upstream_unreachable 10)',
      );
      expect(verdict.sentence).toContain(`since ${SINCE}`);
    }
  });

  it.each(['route_not_found', 'bad_request', 'token_unavailable'])(
    '%s is not the fault of the route',
    (code) => {
      const own = code === 'token_unavailable' ? 100 : 0;
      const verdict = judged([{}], [lastMinute({ errorsByCode: new Map([[code, 100]]), serverErrors: own })]);
      expect(verdict.level).toBe('ok');
    },
  );

  it('whose upstream answers with errors, or refuses tokens', () => {
    expect(judged([{}], [lastMinute({ serverErrors: 50 })])).toMatchObject({
      level: 'warning',
      problems: [{ since: SINCE, why: '50 of 100 answers of the last minute had a status of 500 or more.' }],
    });
    expect(judged([{}], [lastMinute({ refusedTokens: 50 })])).toMatchObject({
      level: 'warning',
      problems: [{ runbook: 'TokenSidecarUpstreamUnauthorized' }],
    });
  });

  it('without requests say nothing', () => {
    expect(judged([{}], [lastMinute({ requests: 0 }), { name: 'b', lastMinute: undefined }]).level).toBe(
      'ok',
    );
  });
});

it('the worst comes first, and how many more there are is said', () => {
  const verdict = judged([{ name: 'slow', consecutiveFailures: 1 }, REJECTED], [], true);
  expect(verdict.problems.map(({ level }) => level)).toEqual(['failing', 'warning', 'warning']);
  expect(verdict.problems[0]?.about).toEqual({ kind: 'credential', name: 'crm' });
  expect(verdict.sentence).toMatch(/ There are 2 more\.$/);
});
