import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { statusDocument } from '../../../src/sidecar/status/page/document.ts';
import { readStatus } from '../../../src/sidecar/status/read-status.ts';
import { openSource, rejection } from '../../token/opened-source.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';

const CREDENTIALS = [{ name: 'default', tokenUrl: 'https://sso.example.com/token', dir: '/secret' }];
const HOST = { host: 'api.example.com' };
const LISTS = {
  forwardProxy: { allow: [HOST] },
  capture: { hosts: [{ ...HOST, address: '127.0.0.2' }] },
  redirect: { hosts: [HOST] },
};

/** What is told of a sidecar that has just started with these lists of hosts. */
async function statusWith(
  lists: Readonly<Record<string, unknown>>,
  changed: Partial<Parameters<typeof readStatus>[0]> = {},
) {
  const text = JSON.stringify({ credentials: CREDENTIALS, ...lists });
  const config = await loadConfig({
    config: { key: '--config', text: await temporaryFile('token-sidecar.json', text) },
  });
  return readStatus({
    config: () => config,
    tokens: () => [],
    stats: () => new Map(),
    history: { recent: () => undefined, lastMinute: () => undefined },
    spoken: () => new Map(),
    refusedHosts: () => [],
    fileTroubles: () => [],
    draining: () => false,
    logLevel: () => 'info',
    configuration: () => undefined,
    pod: { name: 'shop' },
    startedAtMs: 0,
    nowMs: () => 1000,
    ...changed,
  });
}

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
    const status = await statusWith(Object.fromEntries(names.map((name) => [name, LISTS[name]])));
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
  const { verdict, credentials } = await statusWith(LISTS, {
    tokens: () => [source],
    fileTroubles: () => [trouble],
  });
  const runbook = 'TokenSidecarTokenFileFailing';
  expect(verdict.problems).toContainEqual(
    expect.objectContaining({ level: 'warning', since: new Date(500).toISOString(), runbook }),
  );
  expect(verdict.problems.map(({ why }) => why)).toContain('The system said ENOSPC of /tokens/kafka.');
  expect(credentials).toMatchObject([{ level: 'warning' }]);
});

it('a credential that a reload has brought has had no token since then, not since the start', async () => {
  const { source, clock, last } = await openSource();
  const { wallMs } = clock.now();
  await clock.advance(0);
  await last().answer(rejection);
  const { verdict, credentials } = await statusWith(LISTS, {
    tokens: () => [source],
    startedAtMs: wallMs - 3_600_000,
    nowMs: () => clock.now().wallMs,
  });
  const openedAt = new Date(wallMs).toISOString();
  expect(verdict.problems).toMatchObject([{ what: 'credential default has had no token', since: openedAt }]);
  expect(credentials).toMatchObject([{ openedAt }]);
});
