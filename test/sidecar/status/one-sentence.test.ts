/** Whoever looks at a credential, wherever, reads what `credentialCondition` says of it. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkRunning } from '../../../src/check/running.ts';
import { withoutToken } from '../../../src/sidecar/health.ts';
import { statusDocument } from '../../../src/sidecar/status/page/document.ts';
import type { readStatus } from '../../../src/sidecar/status/read-status.ts';
import type { OpenCredential } from '../../../src/sidecar/token-sources.ts';
import { credentialCondition, sentenceOf } from '../../../src/token/condition.ts';
import type { TokenSnapshot } from '../../../src/token/grant-report.ts';
import { examination } from '../../check/examined.ts';
import { CASES, CONFIG, NOW_MS } from '../../token/conditions.ts';
import { statusOf } from './status-of.ts';

const ROUTE = {
  name: 'orders',
  match: { pathPrefix: '/' },
  upstream: 'https://orders.test',
  credential: 'crm',
};
const CREDENTIAL = { name: 'crm', tokenUrl: 'https://sso.example.com/token', dir: '/secret' };

const status = (token: TokenSnapshot, whenTokenUnavailable = 'fail') =>
  statusOf(
    { credentials: [CREDENTIAL], routes: [{ ...ROUTE, whenTokenUnavailable }] },
    {
      credentials: () => [{ config: CONFIG, source: sourceOf(token) }],
      nowMs: () => NOW_MS,
    },
  );

function sourceOf(token: TokenSnapshot) {
  return { snapshot: () => token, grants: () => ({ latest: [], minutes: [] }) };
}

async function checked(report: ReturnType<typeof readStatus>) {
  const server = createServer((_, response) => void response.end(JSON.stringify(report)));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return await checkRunning({ host: '127.0.0.1', port }, examination());
}

const capital = (text: string) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

function textOf(page: string): string {
  const shown = page.replace(/<(pre|style)[\s\S]*?<\/\1>/g, '').replace(/<[^>]*>/g, '');
  return shown.replaceAll('&quot;', '"').replaceAll('&#39;', "'");
}

describe.each(Object.entries(CASES))('%s', (_, { token, sentence, next, level, state }) => {
  const { reason, advice, what } = credentialCondition(CONFIG, token, NOW_MS);

  it('in the status', async () => {
    const { verdict, credentials } = await status(token);
    expect(credentials).toMatchObject([{ state, level }]);
    expect(verdict.level).toBe(level);
    if (level === 'ok') expect(verdict.sentence).toBe(`All is well: ${sentence}.`);
    else expect(verdict.sentence).toContain(`${capital(sentence)}. ${capital(next ?? '')}`);
  });

  it('on the page, with distances in place of instants', async () => {
    const page = statusDocument(await status(token), { script: '', mayChange: false });
    const text = textOf(page);
    for (const clause of [reason, advice, next]) expect(text).toContain(clause?.slice(1) ?? '');
    if (level !== 'ok') expect(text).toMatch(new RegExp(`${capital(what)} for \\d+ (s|min)\\.`));
    expect(text).not.toMatch(/manual|scheduled|previous_credentials|tried like these|:\d\d\.\d|\d{5} ms/);
  });

  it('by check --status', async () => {
    const findings = await checked(await status(token));
    const found = findings.find(({ step }) => step === 'running_credential');
    if (level === 'ok') return expect(found?.verdict).toBe('ok');
    expect(found).toMatchObject({
      verdict: level === 'failing' ? 'failure' : 'warning',
      detail: expect.stringContaining(sentence.replace(`; ${advice}`, '')),
      remedy: expect.stringContaining(advice ?? 'run check without --status'),
    });
  });

  it('by /readyz', () => {
    const missing = withoutToken(
      { config: CONFIG, source: sourceOf(token) } as unknown as OpenCredential,
      NOW_MS,
    );
    expect(missing).toEqual(token.ready ? [] : [{ part: 'credential', name: 'crm', detail: sentence }]);
  });
});

describe('a route of a credential that has no token', () => {
  const { token } = CASES['the client is rejected'] as (typeof CASES)[string];

  it.each([
    ['fail', 'failing', 'waits', 'waits for its credential crm'],
    ['passthrough', 'warning', 'without_token', 'passes requests without the token of crm'],
  ])('that is to %s is not green, and names it', async (when, level, state, words) => {
    const report = await status(token, when);
    expect(report.routes).toMatchObject([{ name: 'orders', level, state }]);
    expect(statusDocument(report, { script: '', mayChange: false })).toContain(`${words}</b>`);
    const found = (await checked(report)).find(({ step }) => step === 'running_route');
    expect(found).toMatchObject({ verdict: 'warning', detail: expect.stringContaining('credential crm') });
  });

  it('is well when it has one', async () => {
    const { token: held } = CASES['renewal fails'] as (typeof CASES)[string];
    expect((await status(held)).routes).toMatchObject([{ level: 'ok', state: 'ready' }]);
  });
});

it('sentences have the form that they have in the log', () => {
  const condition = { what: 'it has failed', sinceMs: NOW_MS - 1000, reason: 'it is away', advice: 'wait' };
  expect(sentenceOf(condition, NOW_MS)).toBe(
    'it has failed since 2030-01-01 11:59:59 UTC (1 s): it is away; wait',
  );
});
