import { describe, expect, it, vi } from 'vitest';
import { TokenUnavailable } from '../../src/token/bearer-source.ts';
import type { TokenResponse } from '../../src/token/provider/token-response.ts';
import { settle } from '../support/manual-clock.ts';
import { failure, loaded, openSource, rejection, token } from './opened-source.ts';

describe('the first token', () => {
  it('is requested at the start, once for any number of waiting requests', async () => {
    const { source, last, grants } = await openSource();
    const callers = Array.from({ length: 100 }, () => source.obtain());
    expect(grants).toHaveLength(1);
    await last().answer(token('a'));
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['Bearer a']));
    expect(source.current()).toBe('Bearer a');
    await source.firstToken;
  });

  it('is awaited through a failure that is retried soon', async () => {
    const { source, clock, last } = await openSource();
    const caller = source.obtain();
    await last().answer(failure);
    await clock.advance(500);
    await last().answer(token('a'));
    expect(await caller).toBe('Bearer a');
  });

  it('is awaited no longer than the limit', async () => {
    const { source, clock } = await openSource();
    const caller = source.obtain().catch((error: unknown) => error);
    await clock.advance(10_000);
    expect(await caller).toBeInstanceOf(TokenUnavailable);
  });

  it('is announced once it is there', async () => {
    const { source, clock, last } = await openSource();
    let there = false;
    void source.firstToken.then(() => {
      there = true;
    });
    await last().answer(failure);
    await clock.advance(500);
    expect(there).toBe(false);
    await last().answer(token('a'));
    expect(there).toBe(true);
  });

  it('is not awaited once retries are more than a second apart', async () => {
    const { source, clock, last, grants } = await openSource();
    const caller = source.obtain().catch((error: unknown) => error);
    await last().answer(failure);
    await clock.advance(500);
    await last().answer(failure);
    await clock.advance(1000);
    // Two failures; the third grant is in flight, and is waited for.
    await last().answer(failure);
    expect(grants).toHaveLength(3);
    expect(await caller).toMatchObject({ code: 'token_unavailable', retryAfterSeconds: 2 });
  });

  it('fails at once with the retry time while the next grant is more than a second away', async () => {
    const { source, last, grants } = await openSource();
    await last().answer(rejection);
    const error = await source.obtain().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'token_unavailable', retryAfterSeconds: 15 });
    expect(String(error)).toContain('status 401 invalid_client');
    expect(grants).toHaveLength(1);
  });

  it('waits for credentials that are not mounted yet, and reports that', async () => {
    const { source, grants, change, last } = await openSource({
      state: 'missing',
      detail: '/secret/client_id does not exist',
    });
    const error = await source.obtain().catch((thrown: unknown) => thrown);
    expect(String(error)).toContain('/secret/client_id does not exist');
    expect(grants).toHaveLength(0);
    change(loaded('one'));
    await settle();
    await last().answer(token('a'));
    expect(source.current()).toBe('Bearer a');
  });
});

describe('renewal', () => {
  it('happens before expiry, unnoticed by requests', async () => {
    const { source, clock, grants, last } = await openSource();
    await last().answer(token('a'));
    await clock.advance(225_000);
    expect(grants).toHaveLength(2);
    expect(source.current()).toBe('Bearer a');
    await last().answer(token('b'));
    expect(source.current()).toBe('Bearer b');
  });

  it('that fails until expiry leaves no token, and the next success restores it', async () => {
    const { source, clock, last } = await openSource();
    await last().answer(token('a', 60_000));
    await clock.advance(45_000);
    await last().answer(failure);
    await clock.advance(500);
    await last().answer(rejection);
    expect(source.current()).toBe('Bearer a');
    await clock.advance(14_500);
    expect(source.current()).toBeUndefined();
    await clock.advance(15_500);
    await last().answer(token('b'));
    expect(source.current()).toBe('Bearer b');
  });

  it('follows the wall clock too: after sleep the token is invalid and requested within seconds', async () => {
    const { source, clock, grants, last } = await openSource();
    await last().answer(token('a', 3_600_000));
    clock.stepWall(3_600_000);
    expect(source.current()).toBeUndefined();
    await clock.advance(15_000);
    expect(grants).toHaveLength(2);
  });
});

describe('a token requested by a person', () => {
  it('is requested at once whatever is planned, while the held one stays in use', async () => {
    const { source, grants, last } = await openSource();
    await last().answer(token('a'));
    expect(source.renew()).toBe('begun');
    await settle();
    expect(grants).toHaveLength(2);
    expect(source.current()).toBe('Bearer a');
    await last().answer(token('b'));
    expect(source.current()).toBe('Bearer b');
    expect(source.grants().latest.at(-1)).toMatchObject({ reason: 'manual', result: 'success' });
  });

  it('does not wait for the backoff after rejected credentials', async () => {
    const { source, grants, last } = await openSource();
    await last().answer(rejection);
    expect(source.renew()).toBe('begun');
    await settle();
    expect(grants).toHaveLength(2);
    await last().answer(token('a'));
    expect(source.current()).toBe('Bearer a');
  });

  it('is requested at most once in ten seconds, and not during a grant', async () => {
    const { source, clock, grants, last } = await openSource();
    expect(source.renew()).toBe('begun');
    expect(grants).toHaveLength(1);
    await last().answer(token('a'));
    expect(source.renew()).toBe('begun');
    await settle();
    await last().answer(token('b'));
    for (let press = 0; press < 100; press++) expect(source.renew()).toBe('too_soon');
    await clock.advance(9999);
    expect(source.renew()).toBe('too_soon');
    await clock.advance(1);
    expect(source.renew()).toBe('begun');
    await settle();
    expect(grants).toHaveLength(3);
  });

  it('is not possible without credentials', async () => {
    const { source, grants } = await openSource({ state: 'missing', detail: 'gone' });
    expect(source.renew()).toBe('impossible');
    expect(grants).toEqual([]);
  });
});

describe('rotation of the credentials', () => {
  it('requests a token with the new secret at once and serves the old token until then', async () => {
    const { source, grants, change, last } = await openSource();
    await last().answer(token('a'));
    change(loaded('two'));
    await settle();
    expect(grants.map(({ secret }) => secret)).toEqual(['one', 'two']);
    expect(source.current()).toBe('Bearer a');
    await last().answer(token('b'));
    expect(source.current()).toBe('Bearer b');
  });

  it('aborts the grant with the old secret', async () => {
    const { source, grants, change, last } = await openSource();
    change(loaded('two'));
    await settle();
    expect(grants[0]?.signal.aborted).toBe(true);
    await last().answer(token('b'));
    await grants[0]?.answer(token('a'));
    expect(source.current()).toBe('Bearer b');
  });

  it('counts the answer to an aborted grant nowhere', async () => {
    const { source, grants, change, last, lines, metrics } = await openSource();
    change(loaded('two'));
    await settle();
    await grants[0]?.answer(rejection);
    expect(source.snapshot()).toMatchObject({ consecutiveFailures: 0, lastFailure: undefined });
    expect(source.grants().latest).toEqual([]);
    expect(await metrics()).not.toContain('token_sidecar_token_refresh_total{');
    expect(lines.join()).not.toContain('no token obtained');
    await last().answer(token('b'));
    expect(source.grants().latest).toMatchObject([{ reason: 'rotation', result: 'success' }]);
  });

  it('checks the files before every grant, so that an unreported change is used', async () => {
    const { clock, grants, changeUnnoticed, last } = await openSource();
    await last().answer(token('a'));
    changeUnnoticed(loaded('two'));
    await clock.advance(225_000);
    expect(grants.map(({ secret }) => secret)).toEqual(['one', 'two']);
  });

  it('more frequent than allowed is used as soon as allowed', async () => {
    const { grants, clock, change, last } = await openSource();
    await last().answer(token('a'));
    for (let nth = 2; nth <= 6; nth++) {
      change(loaded(`${nth}`));
      await settle();
      await last().answer(token(`${nth}`));
    }
    expect(grants).toHaveLength(6);
    change(loaded('7'));
    await clock.advance(4999);
    expect(grants).toHaveLength(6);
    await clock.advance(1);
    expect(grants.at(-1)?.secret).toBe('7');
  });

  it('uses the previous secret when the newest is rejected until expiry, reports that, and returns to the newest', async () => {
    const { source, clock, grants, change, last, lines, metrics } = await openSource();
    await last().answer(token('a'));
    change(loaded('two'));
    await settle();
    while (last().secret === 'two') {
      await last().answer(rejection);
      const before = grants.length;
      while (grants.length === before) await clock.advance(1000);
    }
    expect(source.current()).toBe('Bearer a');
    expect(last().secret).toBe('one');
    await last().answer(token('b'));
    expect(source.current()).toBe('Bearer b');
    expect(source.snapshot()).toMatchObject({
      credentials: { previousInUse: true },
      lastFailure: { result: 'rejected' },
    });
    expect(lines.at(-1)).toContain('token obtained with the previous credentials: the newest are rejected');
    expect(await metrics()).toContain(
      'token_sidecar_token_refresh_total{credential="default",result="success",reason="previous_credentials"} 1',
    );
    expect(await metrics()).toContain('token_sidecar_credentials_previous_in_use{credential="default"} 1');
    await clock.advance(225_000);
    expect(last().secret).toBe('two');
    expect(source.snapshot().credentials).toMatchObject({ previousInUse: true });
    await last().answer(token('c'));
    expect(source.snapshot().credentials.previousInUse).toBe(false);
    expect(await metrics()).toContain('token_sidecar_credentials_previous_in_use{credential="default"} 0');
  });

  it('requests at once when the client’s token file was rewritten during a backoff', async () => {
    const { grants, rewrite, last } = await openSource();
    await last().answer(rejection);
    rewrite();
    await settle();
    expect(grants).toHaveLength(2);
    await last().answer(token('a'));
    rewrite();
    await settle();
    expect(grants).toHaveLength(2);
  });

  it('requests at once when the client’s token file is back during a backoff', async () => {
    const one = loaded('one');
    const { grants, change, last } = await openSource(one);
    await last().answer(rejection);
    change({ state: 'missing', detail: '/secret/token does not exist' });
    change(one);
    await settle();
    expect(grants).toHaveLength(2);
  });

  it('sends one request for a grant during which the credentials are rewritten', async () => {
    const { source, grants, rewrite, last } = await openSource();
    rewrite();
    await settle();
    expect(grants).toHaveLength(1);
    await last().answer(token('a'));
    expect(source.current()).toBe('Bearer a');
  });

  it('keeps the last good credentials while the Secret is unusable', async () => {
    const one = loaded('one');
    const { source, clock, grants, change, last } = await openSource(one);
    await last().answer(token('a'));
    change({ state: 'missing', detail: '/secret/client_secret does not exist' });
    expect(source.snapshot().credentials).toMatchObject({
      state: 'missing',
      detail: '/secret/client_secret does not exist',
    });
    await clock.advance(225_000);
    expect(grants.at(-1)?.secret).toBe('one');
    change(one);
    await settle();
    expect(grants).toHaveLength(2);
    expect(source.snapshot().credentials).toMatchObject({ state: 'loaded', detail: undefined });
  });

  it('reports since when the credentials are unusable', async () => {
    const missing = { state: 'missing', detail: '/secret/client_secret does not exist' } as const;
    const { source, clock, change } = await openSource(missing);
    const since = () => source.snapshot().credentials.unusableSinceMs;
    const openedAtMs = clock.now().wallMs;
    await clock.advance(5000);
    expect(since()).toBe(openedAtMs);
    change(loaded('one'));
    expect(since()).toBeUndefined();
    await clock.advance(5000);
    change(missing);
    const missingAtMs = clock.now().wallMs;
    await clock.advance(5000);
    change({ state: 'empty', detail: '/secret/client_secret is empty' });
    expect(since()).toBe(missingAtMs);
  });

  it('logs each time that they become unusable', async () => {
    const { change, lines } = await openSource();
    for (let n = 0; n < 2; n++) {
      change({ state: 'missing', detail: '/secret/client_secret does not exist' });
      change(loaded('one'));
    }
    expect(lines.filter((line) => line.includes('credentials cannot be used'))).toHaveLength(2);
  });

  it('reports the failed grant, not the Secret, if the last good credentials were used', async () => {
    const { source, change, last } = await openSource();
    change({ state: 'missing', detail: '/secret/client_secret does not exist' });
    await last().answer(rejection);
    await expect(source.obtain()).rejects.toThrow('rejected the client');
  });
});

describe('a token that an upstream refused', () => {
  it('is replaced once for all refused requests', async () => {
    const { api, clock, grants, last } = await openSource();
    await last().answer(token('a'));
    await clock.advance(5000);
    const callers = Array.from({ length: 10 }, () => api.replace('Bearer a'));
    await settle();
    expect(grants).toHaveLength(2);
    await last().answer(token('b'));
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['Bearer b']));
    expect(await api.replace('Bearer a')).toBe('Bearer b');
    expect(grants).toHaveLength(2);
  });

  it.each([
    [{ takesRefusals: true }, 'a'],
    [{}, undefined],
  ] as const)('is sent in the grant only to an endpoint that accepts it: %j', async (said, named) => {
    const { api, clock, grants, last } = await openSource();
    expect(last().refused).toBeUndefined();
    await last().answer({ ...token('a'), ...said } as TokenResponse);
    await clock.advance(5000);
    void api.replace('Bearer a');
    await settle();
    expect(grants).toHaveLength(2);
    expect(last().refused).toBe(named);
  });

  it('is sent until a grant was answered, and not in later renewals', async () => {
    const { api, clock, grants, last } = await openSource();
    await last().answer({ ...token('a'), takesRefusals: true } as TokenResponse);
    await clock.advance(5000);
    void api.replace('Bearer a');
    await settle();
    await last().answer(failure);
    while (grants.length < 3) await clock.advance(1000);
    expect(last().refused).toBe('a');
    await last().answer({ ...token('b'), takesRefusals: true } as TokenResponse);
    while (grants.length < 4) await clock.advance(10_000);
    expect(last().refused).toBeUndefined();
  });

  it('has no replacement if the renewal fails, and stays in use', async () => {
    const { source, api, clock, last } = await openSource();
    await last().answer(token('a'));
    await clock.advance(5000);
    const caller = api.replace('Bearer a');
    await settle();
    await last().answer(failure);
    expect(await caller).toBeUndefined();
    expect(source.current()).toBe('Bearer a');
  });

  it('has no replacement if the provider grants the same again', async () => {
    const { api, clock, last } = await openSource();
    await last().answer(token('a'));
    await clock.advance(5000);
    const caller = api.replace('Bearer a');
    await settle();
    await last().answer(token('a'));
    expect(await caller).toBeUndefined();
  });

  it('has no replacement if the grant takes longer than a request may wait', async () => {
    const { api, clock, last } = await openSource();
    await last().answer(token('a'));
    await clock.advance(5000);
    const caller = api.replace('Bearer a');
    await clock.advance(10_000);
    expect(await caller).toBeUndefined();
    expect(clock.pendingTimers).toBe(0);
    await last().answer(token('b'));
    expect(await api.replace('Bearer a')).toBe('Bearer b');
  });

  it('has no replacement if it is younger than a second', async () => {
    const { api, grants, last } = await openSource();
    await last().answer(token('a'));
    expect(await api.replace('Bearer a')).toBeUndefined();
    expect(grants).toHaveLength(1);
  });
});

describe('a token that an upstream accepted', () => {
  it('is reported once, and again after a refusal', async () => {
    const { api, clock, grants, last } = await openSource();
    await last().answer(token('a'));
    await clock.advance(5000);
    for (let revocation = 1; revocation <= 3; revocation++) {
      const held = api.current() as string;
      for (let request = 0; request < 3; request++) api.accepted(held);
      const caller = api.replace(held);
      await settle();
      expect(grants).toHaveLength(1 + revocation);
      await last().answer(token(`after-${revocation}`));
      expect(await caller).toBe(`Bearer after-${revocation}`);
    }
  });

  it('causes no reading of the clock when accepted again', async () => {
    const { api, clock, last } = await openSource();
    await last().answer(token('a'));
    const look = vi.spyOn(clock, 'now');
    api.accepted('Bearer a');
    const first = look.mock.calls.length;
    for (let request = 0; request < 10; request++) api.accepted('Bearer a');
    expect(look).toHaveBeenCalledTimes(first);
  });
});

describe('a token source reports', () => {
  it('grants by result and reason, and the expiry in wall time, as metrics', async () => {
    const { clock, last, metrics } = await openSource();
    await last().answer(failure);
    await clock.advance(500);
    const requestedAtSeconds = clock.now().wallMs / 1000;
    await last().answer(token('a'));
    const text = await metrics();
    expect(text).toContain(
      'token_sidecar_token_refresh_total{credential="default",result="unavailable",reason="startup"} 1',
    );
    expect(text).toContain(
      'token_sidecar_token_refresh_total{credential="default",result="success",reason="retry"} 1',
    );
    expect(text).toContain(
      `token_sidecar_token_expiry_timestamp_seconds{credential="default"} ${requestedAtSeconds + 300}`,
    );
    expect(text).toContain(
      `token_sidecar_token_renewal_timestamp_seconds{credential="default"} ${requestedAtSeconds + 225}`,
    );
    expect(text).toContain('token_sidecar_token_ready{credential="default"} 1');
    expect(text).toContain('token_sidecar_token_refresh_consecutive_failures{credential="default"} 0');
    await clock.advance(300_000);
    expect(await metrics()).toContain('token_sidecar_token_ready{credential="default"} 0');
  });

  it('the durations of grants by result as metrics', async () => {
    const { clock, last, metrics } = await openSource();
    await clock.advance(300);
    await last().answer(failure);
    await clock.advance(500);
    await clock.advance(1500);
    await last().answer(token('a'));
    const text = await metrics();
    const name = 'token_sidecar_token_refresh_duration_seconds';
    for (const line of [
      `${name}_sum{credential="default",result="unavailable"} 0.3`,
      `${name}_count{credential="default",result="unavailable"} 1`,
      `${name}_sum{credential="default",result="success"} 1.5`,
      `${name}_bucket{le="0.25",credential="default",result="unavailable"} 0`,
      `${name}_bucket{le="0.5",credential="default",result="unavailable"} 1`,
    ]) {
      expect(text).toContain(line);
    }
  });

  it('no gauges without a token or expiry', async () => {
    const { last, metrics } = await openSource();
    const name = 'token_sidecar_token_expiry_timestamp_seconds{';
    expect(await metrics()).not.toContain(name);
    await last().answer(token('a'));
    expect(await metrics()).toContain(name);
  });

  it('the last twenty grants, oldest first, with their times', async () => {
    const { source, clock, grants, last } = await openSource();
    for (let grant = 1; grant <= 25; grant++) {
      await clock.advance(grant);
      await last().answer(token(`t${grant}`, 60_000));
      expect(source.grants().latest).toHaveLength(Math.min(grant, 20));
      while (grants.length === grant) await clock.advance(1000);
    }
    const { latest: history } = source.grants();
    expect(history[0]).toMatchObject({ reason: 'scheduled', result: 'success' });
    expect(history.every(({ atMs }, i) => i === 0 || atMs > (history[i - 1]?.atMs ?? 0))).toBe(true);
    // Probes and scrapes, which come often, have no list made.
    expect(Object.values(source.snapshot()).filter(Array.isArray)).toEqual([]);
  });

  it('the credential in each log line', async () => {
    const { change, last, lines } = await openSource();
    await last().answer(failure);
    change(loaded('two'));
    await settle();
    await last().answer(token('a'));
    expect(lines.length).toBeGreaterThanOrEqual(4);
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ credential: 'default' });
  });

  it('the progress of the first token: requested, then obtained', async () => {
    const { source, last } = await openSource();
    expect(source.snapshot()).toMatchObject({ grantInFlight: true, obtainedFirstToken: false });
    await last().answer(token('a'));
    expect(source.snapshot()).toMatchObject({ grantInFlight: false, obtainedFirstToken: true });
  });

  it('metrics count what became of the changes of the Secret', async () => {
    const { change, metrics } = await openSource();
    change(loaded('two'));
    change(loaded('three'));
    change({ state: 'missing', detail: '/secret/client_secret does not exist' });
    const text = await metrics();
    const name = 'token_sidecar_credentials_reload_total{credential="default",result=';
    expect(text).toContain(`${name}"success"} 2`);
    expect(text).toContain(`${name}"missing"} 1`);
  });

  it('that the system gave no watch on the Secret from the start is warned of', async () => {
    const { lines, metrics } = await openSource(loaded('one'), { by: 'polling', code: 'ENOSPC' });
    expect(lines.filter((line) => line.includes('ENOSPC'))).toHaveLength(1);
    expect(await metrics()).toContain('token_sidecar_credentials_watched{credential="default"} 0');
  });

  it('that the system gives no watch on the Secret is warned of once, and shown while it is so', async () => {
    const { source, changeMode, lines, metrics } = await openSource();
    for (let time = 0; time < 3; time++) {
      changeMode({ by: 'polling', code: 'EMFILE' });
      expect(source.snapshot().credentials.watchedBy).toBe('polling');
      expect(await metrics()).toContain('token_sidecar_credentials_watched{credential="default"} 0');
      changeMode({ by: 'notification' });
      expect(source.snapshot().credentials.watchedBy).toBe('notification');
      expect(await metrics()).toContain('token_sidecar_credentials_watched{credential="default"} 1');
    }
    expect(lines.filter((line) => line.includes('EMFILE'))).toHaveLength(1);
  });

  it('no log line, metric or snapshot holds a token or a secret', async () => {
    const { source, clock, last, lines, metrics, change } = await openSource(loaded('S3CRET'));
    await last().answer(token('T0KEN'));
    change(loaded('S3CRET-2'));
    await settle();
    await last().answer(rejection);
    await clock.advance(1000);
    const told = [...lines, await metrics(), JSON.stringify(source.snapshot())].join('\n');
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(told).not.toMatch(/S3CRET|T0KEN|shop/);
  });
});

it('credentials that were gone and are there again as they were are told of', async () => {
  const before = loaded('one');
  const { change, lines } = await openSource(before);
  change({ state: 'missing', detail: '/secret/client_id does not exist' });
  change(before);

  expect(lines.map((line) => JSON.parse(line).msg).slice(-2)).toEqual([
    'credentials cannot be used',
    'credentials are there again, as they were',
  ]);
});

describe('what is held', () => {
  it('is the bare token and its end, for as long as it may be sent', async () => {
    const { source, clock, last } = await openSource();
    expect(source.held()).toBeUndefined();
    const { monotonicMs } = clock.now();
    await last().answer(token('a', 10_000));
    const held = source.held();
    expect(held?.token).toBe('a');
    const leftMs = (held?.sendableUntil.monotonicMs ?? 0) - monotonicMs;
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(10_000);
    await clock.advance(leftMs);
    expect(source.held()).toBeUndefined();
  });

  it('is told of whenever it is another, to whoever still listens', async () => {
    const { source, clock, last } = await openSource();
    const told: (string | undefined)[] = [];
    const end = source.onToken(() => told.push(source.held()?.token));
    await last().answer(failure);
    expect(told).toEqual([]);
    await clock.advance(1000);
    await last().answer(token('a'));
    await clock.advance(225_000);
    await last().answer(token('b'));
    expect(told).toEqual(['a', 'b']);
    end();
    await clock.advance(225_000);
    await last().answer(token('c'));
    expect(source.held()?.token).toBe('c');
    expect(told).toEqual(['a', 'b']);
  });

  it('is the same for all, and the status says so', async () => {
    const { source } = await openSource();
    expect(source.snapshot().tokens).toEqual({ kind: 'held' });
  });
});

it('says whether the mounted credentials can be used', async () => {
  const { change, metrics } = await openSource();
  expect(await metrics()).toContain('token_sidecar_credentials_usable{credential="default"} 1');
  change({ state: 'missing', detail: '/secret/client_id does not exist' });
  expect(await metrics()).toContain('token_sidecar_credentials_usable{credential="default"} 0');
});
