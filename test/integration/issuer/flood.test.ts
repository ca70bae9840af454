import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hashSecret } from '../../../src/issuer/secret-hashing.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import { askForToken, basic, type RunningIssuer, runIssuer } from './running-issuer.ts';

/** Dear enough for a flood to fill the queue. */
const COST = { ln: 12, r: 8, p: 1 };

let issuer: RunningIssuer;
beforeEach(async () => {
  issuer = await runIssuer(
    [
      { clientId: 'shop', clientSecret: 's3cret' },
      { clientId: 'bank', secretHash: await hashSecret('right', COST) },
      { clientId: 'post', secretHash: await hashSecret('right', COST) },
    ],
    // However long the flood takes to arrive, no time passes in which more would be allowed.
    { clock: { ...systemClock, monotonicMs: () => 0 } },
  );
});
afterEach(async () => await issuer.close());

const ask = (id: string, secret: string) =>
  askForToken(issuer.tokenUrl, { authorization: basic(id, secret) });
const flood = (id: string) =>
  Promise.all(Array.from({ length: 40 }, (_, index) => ask(id, `wrong ${index}`)));

describe('a flood of wrong secrets from the address of everybody else', () => {
  it('is answered 429 with Retry-After beyond a bound, in JSON, and is one line of the log', async () => {
    const answers = await flood('bank');
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(30);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
    const [one] = refused;
    expect(one?.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(one?.json).toMatchObject({ error: 'too_many_requests' });
    const logged = issuer.lines.filter((line) => line.includes('too_many_requests'));
    expect(logged.length).toBeLessThan(10);
    expect(issuer.lines.join('')).not.toContain('wrong 1');
    expect(await issuer.registry.metrics()).toContain('tokens_total{result="too_many_requests"} 30');
  });

  it('keeps no right secret from its token: in clear, remembered, or of another client', async () => {
    expect((await ask('bank', 'right')).status).toBe(200);
    const flooding = Promise.all([flood('bank'), flood('shop'), flood('nobody')]);
    const right = await Promise.all([ask('bank', 'right'), ask('shop', 's3cret'), ask('post', 'right')]);
    expect(right.map(({ status }) => status)).toEqual([200, 200, 200]);
    await flooding;
    expect((await ask('bank', 'right')).status).toBe(200);
  });

  it('keeps the right secret of the same client from its token only until it comes again', async () => {
    const flooding = flood('bank');
    let status = 0;
    while (status !== 200) {
      ({ status } = await ask('bank', 'right'));
      expect([200, 429]).toContain(status);
    }
    await flooding;
  });
});
