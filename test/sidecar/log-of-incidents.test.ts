/** What the log of the real sidecar says of something that fails for a long time. */

import { expect, it } from 'vitest';
import { World } from '../faults/world.ts';

const MINUTE_MS = 60_000;
/** In every token of the provider. */
const TOKEN_MARK = 'token-1';

type Line = Readonly<Record<string, unknown>>;

/** A sidecar that is ready, and its lines since then, or since they were read last: none of detail. */
async function start(credential: Readonly<Record<string, unknown>> = {}) {
  const grant = { name: 'client_credentials', type: 'client_credentials', credential, files: {} };
  const world = await World.start({ seed: 1, grant });
  await world.until(() => world.token.ready, 1000, 10);
  let read = world.logLines.length;
  const lines = (): Line[] => {
    const next = world.logLines.slice(read).map((line) => JSON.parse(line) as Line);
    read += next.length;
    return next.filter(({ level }) => level !== 'debug' && level !== 'trace');
  };
  return { world, lines };
}

it('an outage of the provider: what fails and what to do, reminders, and how long it lasted', async () => {
  const { world, lines } = await start();
  await world.provider.close();
  await world.live(10 * MINUTE_MS);

  const said = lines();
  expect(said.map(({ level }) => level)).toEqual(Array(said.length).fill('warn'));
  const renewals = said.filter(({ msg }) => msg === 'no token obtained');
  const why = { credential: 'default', detail: 'ECONNREFUSED', advice: expect.stringContaining('provider') };
  // At first, after a minute and once nothing is held, then after five minutes.
  expect(renewals).toMatchObject([why, why, { ...why, heldTokenEndsInMs: 0 }, why]);
  expect(renewals[0]).not.toHaveProperty('failures');
  expect(Number(renewals[3]?.['failures'])).toBeGreaterThan(10);
  expect(Number(renewals[3]?.['lastedMs'])).toBeGreaterThanOrEqual(5 * MINUTE_MS);
  // Of sixty requests.
  const requests = said.filter(({ msg }) => msg === 'request not completed');
  expect(requests).toMatchObject([
    { route: 'api', error: 'token_unavailable' },
    { failures: 13, lastedMs: MINUTE_MS },
  ]);
  expect(said).toHaveLength(renewals.length + requests.length);

  await world.provider.listen();
  await world.live(3 * MINUTE_MS);
  const after = lines().filter(({ level }) => level === 'info');
  expect(after).toMatchObject([
    { msg: 'token obtained', failures: expect.any(Number), lastedMs: expect.any(Number) },
    { msg: 'request not completed: no more of these for a minute', route: 'api', level: 'info' },
  ]);
  expect(Number(after[0]?.['failures'])).toBeGreaterThan(Number(renewals[3]?.['failures']));
  const failed = world.app.answers.filter(({ status }) => status === 503).length;
  expect(after[1]).toMatchObject({ failures: failed });
  expect(world.logLines.join('')).not.toContain(TOKEN_MARK);
});

it('an upstream that answers 401 to everything: one warning, reminders, and when it takes tokens again', async () => {
  const { world, lines } = await start();
  const ofUpstream = (): Line[] => lines().filter(({ msg }) => String(msg).startsWith('the upstream'));
  world.upstream.refusesAll = true;
  await world.live(MINUTE_MS);

  const [first, ...more] = ofUpstream();
  expect(first).toMatchObject({
    level: 'warn',
    route: 'api',
    credential: 'default',
    advice: expect.stringContaining("the upstream's log"),
    msg: 'the upstream refuses the token',
  });
  expect(more).toEqual([]);

  await world.live(9 * MINUTE_MS);
  expect(ofUpstream()).toMatchObject([
    { level: 'warn', failures: 13 },
    { level: 'warn', failures: 61, lastedMs: 5 * MINUTE_MS },
  ]);

  world.upstream.refusesAll = false;
  await world.live(2 * MINUTE_MS);
  expect(ofUpstream()).toMatchObject([
    { level: 'info', failures: 120, msg: 'the upstream refuses the token: no more of these for a minute' },
  ]);
  expect(world.logLines.join('')).not.toContain(TOKEN_MARK);
});

it.each([
  [
    'invalid_dpop_proof',
    /invalid_dpop_proof/,
    (url: string) => `knows itself with ${url}, which the proof names`,
  ],
  ['use_dpop_nonce', /use_dpop_nonce/, () => 'one field DPoP-Nonce'],
])(
  'an upstream that refuses proofs with %s: one warning, reminders, and no other token is asked for',
  async (error, reason, advice) => {
    const { world, lines } = await start({ proofOfPossession: 'dpop' });
    world.upstream.refusesAll = true;
    world.upstream.challenge = `DPoP error="${error}", algs="ES256"`;
    await world.live(9 * MINUTE_MS);

    const said = lines().filter(({ level }) => level === 'warn');
    const msg = 'the upstream refuses the proof of the token';
    const url = world.upstream.url;
    const where = { msg, route: 'api', credential: 'default', upstream: new URL(url).host };
    expect(said).toMatchObject([
      { ...where, reason: expect.stringMatching(reason), advice: expect.stringContaining(advice(url)) },
      { ...where, failures: 13 },
      { ...where, failures: 61, lastedMs: 5 * MINUTE_MS },
    ]);
    // No more than without refusals.
    expect(world.attempts.length).toBeLessThanOrEqual(4);
    expect(world.logLines.join('')).not.toMatch(new RegExp(`${TOKEN_MARK}|eyJ`));
  },
);

it('an upstream that refuses a revoked token leaves no warning: the next one is taken', async () => {
  const { world, lines } = await start();
  await world.live(20_000);
  for (const token of world.provider.given) world.upstream.revoked.add(token);
  await world.live(MINUTE_MS);
  expect(world.app.answers.every(({ status }) => status === 200)).toBe(true);
  expect(lines().filter(({ level }) => level !== 'info')).toEqual([]);
});
