import { describe, expect, it } from 'vitest';
import { type FoundCredential, judge, levelOf } from '../../../src/sidecar/status/verdict.ts';

type Findings = Parameters<typeof judge>[0];
type FoundRoute = Findings['routes'][number];

const SINCE = '2030-01-01T03:04:05.000Z';
const NOW_MS = Date.parse(SINCE) + 12 * 60_000;

const HELD: FoundCredential = {
  name: 'crm',
  exchanges: false,
  serves: true,
  condition: { state: 'ready', level: 'ok', what: 'credential crm has a token' },
};

const MISSING: FoundCredential = {
  ...HELD,
  serves: false,
  condition: {
    state: 'no_token',
    level: 'failing',
    what: 'credential crm has had no token',
    sinceMs: Date.parse(SINCE),
    reason: 'https://sso.example.com/token rejected the client (invalid_client)',
    advice: 'compare the Secret',
    next: 'requests that need it get 503; the sidecar asks again',
    nextAtMs: NOW_MS + 30_000,
  },
};

const LATE: FoundCredential = {
  ...HELD,
  name: 'slow',
  condition: { state: 'not_renewed', level: 'warning', what: 'credential slow has had no new token' },
};

function judged(
  credentials: readonly FoundCredential[] = [HELD],
  routes: readonly FoundRoute[] = [],
  draining = false,
) {
  return judge({ nowMs: NOW_MS, draining, credentials, routes, others: [] });
}

describe('credentials', () => {
  it('that have tokens are well', () => {
    expect(judged()).toEqual({
      level: 'ok',
      sentence: 'All is well: credential crm has a token.',
      problems: [],
    });
    expect(judged([HELD, { ...HELD, name: 'b' }]).sentence).toBe(
      'All is well: each of 2 credentials has a token.',
    );
    expect(judged([HELD, { ...HELD, name: 'b', exchanges: true }]).sentence).toBe(
      'All is well: each of 2 credentials has a token or exchanges those of requests.',
    );
  });

  it('that have none: what, since when, why, what to do and what is next, with distances', () => {
    expect(judged([MISSING]).sentence).toBe(
      'Credential crm has had no token since 2030-01-01 03:04:05 UTC (12 min): https://sso.example.com/token rejected the client (invalid_client); compare the Secret. Requests that need it get 503; the sidecar asks again at 2030-01-01 03:16:35 UTC (in 30 s).',
    );
  });
});

const ROUTE = { name: 'api', credential: 'crm', whenTokenUnavailable: 'fail' } as const;

describe('routes', () => {
  const lastMinute = (minute: Partial<NonNullable<FoundRoute['lastMinute']>>): FoundRoute => ({
    ...ROUTE,
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
    const verdict = judged([HELD], [lastMinute({ errorsByCode, serverErrors: failed })]);
    expect(verdict.level).toBe(level);
    expect(levelOf(verdict, 'route', 'api')).toBe(level);
    expect(levelOf(verdict, 'route', 'other')).toBe('ok');
    if (level === 'failing') {
      expect(verdict.sentence).toContain(
        '10 of 100 requests of the last minute failed (upstream_unreachable 10)',
      );
      expect(verdict.sentence).toContain('since 2030-01-01 03:04:05 UTC (12 min)');
    }
  });

  it.each(['route_not_found', 'bad_request', 'token_unavailable'])(
    '%s is not the fault of the route',
    (code) => {
      const own = code === 'token_unavailable' ? 100 : 0;
      const verdict = judged(
        [HELD],
        [lastMinute({ errorsByCode: new Map([[code, 100]]), serverErrors: own })],
      );
      expect(verdict.level).toBe('ok');
    },
  );

  it('whose upstream answers with errors, or refuses tokens', () => {
    expect(judged([HELD], [lastMinute({ serverErrors: 50 })])).toMatchObject({
      level: 'warning',
      problems: [
        { since: SINCE, reason: '50 of 100 answers of the last minute had a status of 500 or more' },
      ],
    });
    expect(judged([HELD], [lastMinute({ refusedTokens: 50 })])).toMatchObject({
      level: 'warning',
      problems: [{ runbook: 'TokenSidecarUpstreamUnauthorized' }],
    });
  });

  it('without requests say nothing', () => {
    expect(
      judged([HELD], [lastMinute({ requests: 0 }), { ...ROUTE, name: 'b', lastMinute: undefined }]).level,
    ).toBe('ok');
  });
});

it('the worst comes first, and how many more there are is said', () => {
  const verdict = judged([LATE, MISSING], [], true);
  expect(verdict.problems.map(({ level }) => level)).toEqual(['failing', 'warning', 'warning']);
  expect(verdict.problems[0]?.about).toEqual({ kind: 'credential', name: 'crm' });
  expect(verdict.sentence).toMatch(/ There are 2 more\.$/);
});
