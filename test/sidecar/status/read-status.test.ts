import { expect, it } from 'vitest';
import { statusDocument } from '../../../src/sidecar/status/page/document.ts';
import { credentialConfig } from '../../support/credential-config.ts';
import { openSource, rejection } from '../../token/opened-source.ts';
import { statusOf } from './status-of.ts';

const CONFIG = credentialConfig({ tokenUrl: 'https://sso.example.com/token' });
const HOST = { host: 'api.example.com' };
const LISTS = {
  forwardProxy: { allow: [HOST] },
  capture: { hosts: [{ ...HOST, address: '127.0.0.2' }] },
  redirect: { hosts: [HOST] },
};

it.each([
  [['forwardProxy'], 'Hosts of the forward proxy', [['Hosts on no list', 'deny']]],
  [['capture'], 'Captured hosts', [['Hosts that are not captured', 'deny']]],
  [['redirect'], 'Redirected hosts', [['Redirected hosts on no list', 'pass']]],
  [
    ['forwardProxy', 'redirect'],
    'Listed hosts',
    [
      ['Hosts on no list', 'deny'],
      ['Redirected hosts on no list', 'pass'],
    ],
  ],
] as const)(
  'what becomes of other hosts is said for the way that they come: %j',
  async (names, heading, facts) => {
    const status = await statusOf(Object.fromEntries(names.map((name) => [name, LISTS[name]])));
    const page = statusDocument(status, { script: '', mayChange: false });
    expect(page).toContain(`<h2 id="hosts">${heading}</h2>`);
    for (const [name, value] of facts) expect(page).toContain(`<dt>${name}</dt><dd>${value}</dd>`);
    expect(page.includes('forward proxy')).toBe(names.some((name) => name === 'forwardProxy'));
    expect(page.includes('<dt>CONNECT</dt>')).toBe(names.some((name) => name === 'forwardProxy'));
  },
);

it('a file of a token that could not be written is a problem of its credential', async () => {
  const { source } = await openSource();
  const trouble = { credential: 'default', path: '/tokens/kafka', code: 'ENOSPC', sinceMs: 500 };
  const { verdict, credentials } = await statusOf(LISTS, {
    credentials: () => [{ config: CONFIG, source }],
    fileTroubles: () => [trouble],
  });
  const runbook = 'TokenSidecarTokenFileFailing';
  expect(verdict.problems).toContainEqual(
    expect.objectContaining({ level: 'warning', since: new Date(500).toISOString(), runbook }),
  );
  expect(verdict.problems.map(({ reason }) => reason)).toContain('the system said ENOSPC of /tokens/kafka');
  expect(credentials).toMatchObject([{ level: 'warning' }]);
});

it('a credential that a reload has brought has had no token since then, not since the start', async () => {
  const { source, clock, last } = await openSource();
  const { wallMs } = clock.now();
  await clock.advance(0);
  await last().answer(rejection);
  const { verdict, credentials } = await statusOf(LISTS, {
    credentials: () => [{ config: CONFIG, source }],
    startedAtMs: wallMs - 3_600_000,
    nowMs: () => clock.now().wallMs,
  });
  const openedAt = new Date(wallMs).toISOString();
  expect(verdict.problems).toMatchObject([{ what: 'credential default has had no token', since: openedAt }]);
  expect(credentials).toMatchObject([{ openedAt }]);
});
