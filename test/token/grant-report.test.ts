import { expect, it } from 'vitest';
import { reportGrant } from '../../src/token/grant-report.ts';
import { INITIAL_STATE, type TokenRequestReason, type TokenState } from '../../src/token/token-state.ts';
import { captureLog } from '../support/log-capture.ts';
import { failure, token } from './opened-source.ts';

type EndedGrant = Parameters<typeof reportGrant>[1];

const NOW = { monotonicMs: 5000.25, wallMs: 1_900_000_005_000 };
const inMs = (ms: number) => ({ monotonicMs: NOW.monotonicMs + ms, wallMs: NOW.wallMs + ms });

const HOLDING: TokenState = {
  ...INITIAL_STATE,
  token: {
    number: 1,
    authorization: 'Bearer a',
    requestedAt: NOW,
    expiresAt: inMs(60_000.4),
    sendableUntil: inMs(58_750),
    grantedTo: 'newest',
  },
  due: { at: inMs(45_000.4), reason: 'scheduled' },
};

function reported(reason: TokenRequestReason, ended: Pick<EndedGrant, 'outcome' | 'state'>) {
  const { log, lines } = captureLog();
  const grant = { id: 1, reason, requestedAt: NOW, writing: 'newest' } as const;
  reportGrant(log, { grant, durationMs: 12.4, now: NOW, where: 'https://sso/token', ...ended });
  expect(lines).toHaveLength(1);
  const { time: _, msg: __, tokenUrl, ...facts } = JSON.parse(lines[0] as string);
  expect(tokenUrl).toBe('https://sso/token');
  return facts;
}

it('a grant that brought a token: how long it took, how long that lives, when the next is due', () => {
  expect(reported('scheduled', { outcome: token('a', 60_000.4), state: HOLDING })).toEqual({
    level: 'info',
    reason: 'scheduled',
    durationMs: 12,
    lifetimeMs: 60_000,
    nextInMs: 45_000,
  });
});

it('one that needed the previous credentials is a warning', () => {
  expect(reported('previous_credentials', { outcome: token('a', 60_000), state: HOLDING })).toMatchObject({
    level: 'warn',
    lifetimeMs: 60_000,
  });
});

it('one that says that the held token is at its end is no warning', () => {
  expect(reported('scheduled', { outcome: token('a', 0), state: HOLDING })).toMatchObject({
    level: 'info',
    lifetimeMs: 0,
  });
});

it('one that failed: why, how often in a row, and what is left of the held token', () => {
  const state = { ...HOLDING, consecutiveFailures: 3 };
  expect(reported('retry', { outcome: failure, state })).toEqual({
    level: 'warn',
    reason: 'retry',
    durationMs: 12,
    nextInMs: 45_000,
    result: 'unavailable',
    detail: 'ECONNREFUSED',
    consecutiveFailures: 3,
    heldTokenEndsInMs: 60_000,
  });
});

it('one that failed while nothing is held or planned', () => {
  expect(reported('startup', { outcome: failure, state: INITIAL_STATE })).toEqual({
    level: 'warn',
    reason: 'startup',
    durationMs: 12,
    result: 'unavailable',
    detail: 'ECONNREFUSED',
    consecutiveFailures: 0,
    heldTokenEndsInMs: 0,
  });
});
