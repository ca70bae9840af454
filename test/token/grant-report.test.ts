import { describe, expect, it } from 'vitest';
import { afterFailure } from '../../src/platform/log/incidents.ts';
import { reportGrant } from '../../src/token/grant-report.ts';
import { INITIAL_STATE, type TokenRequestReason, type TokenState } from '../../src/token/token-state.ts';
import { captureLog } from '../support/log-capture.ts';
import { failure, rejection, token } from './opened-source.ts';

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

type Reported = Pick<EndedGrant, 'outcome' | 'state'> & Partial<Pick<EndedGrant, 'incident'>>;

function reported(reason: TokenRequestReason, ended: Reported) {
  const { log, lines } = captureLog();
  const grant = { id: 1, reason, requestedAt: NOW, writing: 'newest' } as const;
  const where = 'https://sso/token';
  const advise = () => 'do this';
  reportGrant(log, { grant, durationMs: 12.4, now: NOW, where, incident: undefined, advise, ...ended });
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

it('one that failed: why, what to do, and what is left of the held token', () => {
  expect(reported('retry', { outcome: failure, state: HOLDING })).toEqual({
    level: 'warn',
    reason: 'retry',
    durationMs: 12,
    nextInMs: 45_000,
    result: 'unavailable',
    detail: 'ECONNREFUSED',
    advice: 'do this',
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
    advice: 'do this',
    heldTokenEndsInMs: 0,
  });
});

describe('after failures', () => {
  const at = (ms: number) => NOW.monotonicMs + ms;
  const cause = JSON.stringify([failure, false]);
  const incident = afterFailure(afterFailure(undefined, cause, at(-30_000)), cause, at(-20_000));

  it('another of the same cause is a detail', () => {
    expect(reported('retry', { outcome: failure, state: HOLDING, incident })).toMatchObject({
      level: 'debug',
      failures: 3,
    });
  });

  it('another cause, and the end of the held token, are news', () => {
    const news = { level: 'warn', failures: 3, lastedMs: 30_000 };
    expect(reported('retry', { outcome: rejection, state: HOLDING, incident })).toMatchObject(news);
    expect(reported('retry', { outcome: failure, state: INITIAL_STATE, incident })).toMatchObject(news);
  });

  it('a token ends it, and says how long it lasted and how many failed', () => {
    expect(reported('retry', { outcome: token('a'), state: HOLDING, incident })).toMatchObject({
      level: 'info',
      failures: 2,
      lastedMs: 30_000,
    });
  });

  it('a token of the previous credentials does not', () => {
    const { log, lines } = captureLog();
    const grant = { id: 1, reason: 'previous_credentials', requestedAt: NOW, writing: 'newest' } as const;
    const ended = { grant, outcome: token('a'), state: HOLDING, durationMs: 1, now: NOW, where: undefined };
    const advise = () => 'do this';
    const goesOn = reportGrant(log, { ...ended, incident, advise });
    reportGrant(log, { ...ended, incident: goesOn, advise });
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', advice: 'do this', failures: 2 },
      { level: 'debug' },
    ]);
  });
});
