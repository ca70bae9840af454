import { describe, expect, it } from 'vitest';
import { ProofMaker } from '../../../src/token/dpop/proof-maker.ts';
import { SubjectTokens } from '../../../src/token/exchange/subject-tokens.ts';
import type { TokenResponse } from '../../../src/token/provider/token-response.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';
import { ManualClock, settle } from '../../support/manual-clock.ts';

const MAX_EXCHANGES = 256;

const MAX_BYTES = 8 * 1024 * 1024;

const MAX_FAILED = 1000;

const MAX_SUBJECTS = 1000;

const REFUSED: TokenResponse = {
  result: 'rejected',
  detail: 'status 400 invalid_grant',
  blames: 'subject',
};
const AWAY: TokenResponse = { result: 'unavailable', detail: 'ECONNREFUSED', retryAfterMs: 4000 };
const CLIENT_REJECTED: TokenResponse = {
  result: 'rejected',
  detail: 'status 401 invalid_client',
  blames: 'client',
};

const LINE = { atOnce: 8, timeoutMs: 10_000 };

function create(answer: (subject: string, count: number) => TokenResponse | Promise<TokenResponse>) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const tokens = new SubjectTokens({
    name: 'crm',
    clock,
    ...LINE,
    async exchange(subject) {
      asked.push(subject);
      return await answer(subject, asked.length);
    },
  });
  return { clock, asked, tokens };
}

const GRANTED = { result: 'success', accessToken: 't', lifetimeMs: 300_000 } as const;

const granted = (accessToken: string, lifetimeMs = 300_000): TokenResponse => ({
  result: 'success',
  accessToken,
  lifetimeMs,
});

function jwt(claims: Record<string, unknown>): string {
  return `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
}

it('each subject has its own token, exchanged once while it is valid', async () => {
  const { asked, tokens, clock } = create((subject, count) => granted(`${subject}-${count}`));
  expect(await tokens.obtain('ann')).toBe('Bearer ann-1');
  expect(await tokens.obtain('bob')).toBe('Bearer bob-2');
  expect(await tokens.obtain('ann')).toBe('Bearer ann-1');
  expect(tokens.current('ann')).toBe('Bearer ann-1');
  expect(tokens.current('eve')).toBeUndefined();
  await clock.advance(299_000);
  expect(tokens.current('ann')).toBeUndefined();
  expect(await tokens.obtain('ann')).toBe('Bearer ann-3');
  expect(asked).toEqual(['ann', 'bob', 'ann']);
});

it('every request that waits for an exchange learns its trace span, and no other request does', async () => {
  const trace = (spanId: string) => ({ traceId: 'a'.repeat(32), spanId, sampled: true });
  const tokens = new SubjectTokens({
    name: 'crm',
    clock: new ManualClock(),
    ...LINE,
    async exchange(subject, begun) {
      begun(trace(subject));
      return granted(subject);
    },
  });
  const told: [string, string][] = [];
  const ask = (who: string, subject: string) =>
    tokens.obtain(subject, { awaits: ({ spanId }) => void told.push([who, spanId]) });
  await Promise.all([ask('1', 'ann'), ask('2', 'bob'), ask('3', 'ann')]);
  await ask('4', 'ann');
  expect(told).toEqual([
    ['1', 'ann'],
    ['3', 'ann'],
    ['2', 'bob'],
  ]);
});

it('simultaneous requests for one subject share one exchange', async () => {
  const { promise, resolve } = Promise.withResolvers<TokenResponse>();
  const { asked, tokens } = create(() => promise);
  const both = [tokens.obtain('ann'), tokens.obtain('ann')];
  await settle();
  resolve(granted('one'));
  expect(await Promise.all(both)).toEqual(['Bearer one', 'Bearer one']);
  expect(asked).toEqual(['ann']);
});

it('a token is not kept beyond the expiry of its subject token', async () => {
  const { tokens, clock } = create(() => granted('long', 3_600_000));
  const nowSeconds = clock.now().wallMs / 1000;
  const subject = jwt({ iat: nowSeconds, exp: nowSeconds + 10 });
  await tokens.obtain(subject);
  await clock.advance(8000);
  expect(tokens.current(subject)).toBe('Bearer long');
  await clock.advance(2000);
  expect(tokens.current(subject)).toBeUndefined();
});

it('a token for a subject that has expired by the local clock is used only for the waiting requests', async () => {
  const { tokens, clock, asked } = create(() => granted('long', 3_600_000));
  const nowSeconds = clock.now().wallMs / 1000;
  const subject = jwt({ iat: nowSeconds - 600, exp: nowSeconds - 1 });
  expect(await tokens.obtain(subject)).toBe('Bearer long');
  expect(tokens.current(subject)).toBe('Bearer long');
  await clock.advance(1000);
  expect(tokens.current(subject)).toBeUndefined();
  await tokens.obtain(subject);
  expect(asked).toHaveLength(2);
});

describe('a failed token exchange', () => {
  it('of a subject affects that subject only, for five seconds', async () => {
    const { asked, tokens, clock } = create((subject) => (subject === 'eve' ? REFUSED : granted('ok')));
    for (let n = 0; n < 3; n++) {
      await expect(tokens.obtain('eve')).rejects.toMatchObject({ code: 'subject_token_refused' });
    }
    expect(await tokens.obtain('ann')).toBe('Bearer ok');
    expect(asked).toEqual(['eve', 'ann']);
    await clock.advance(5000);
    await expect(tokens.obtain('eve')).rejects.toThrow('invalid_grant');
    expect(asked).toHaveLength(3);
  });

  it('because the provider is away stops exchanges for everybody for the stated time', async () => {
    let answer: TokenResponse = AWAY;
    const { asked, tokens, clock } = create(() => answer);
    await expect(tokens.obtain('ann')).rejects.toMatchObject({
      code: 'token_unavailable',
      retryAfterSeconds: 4,
    });
    await expect(tokens.obtain('bob')).rejects.toThrow('ECONNREFUSED');
    expect(asked).toEqual(['ann']);
    answer = granted('ok');
    await clock.advance(4000);
    expect(await tokens.obtain('bob')).toBe('Bearer ok');
  });

  it('of one of several callers does not stop exchanges for other callers', async () => {
    const reset: TokenResponse = { result: 'unavailable', detail: 'ECONNRESET' };
    const { asked, tokens, clock } = create((subject) => (subject.startsWith('eve') ? reset : granted('ok')));
    const obtain = (subject: string, caller: string) => tokens.obtain(subject, { caller });
    for (const subject of ['eve-1', 'eve-2', 'eve-1']) {
      await expect(obtain(subject, 'eve')).rejects.toMatchObject({ retryAfterSeconds: 1 });
    }
    expect(await obtain('ann', 'ann')).toBe('Bearer ok');
    expect(asked).toEqual(['eve-1', 'eve-2', 'ann']);
    await clock.advance(1000);
    await expect(obtain('eve-1', 'eve')).rejects.toThrow('ECONNRESET');
    expect(await obtain('bob', 'bob')).toBe('Bearer ok');
  });

  it('of two callers in a row, without an answer between them, stops exchanges for everybody', async () => {
    let answer: TokenResponse = AWAY;
    const { asked, tokens, clock } = create(() => answer);
    const obtain = (subject: string, caller: string) => tokens.obtain(subject, { caller });
    await expect(obtain('ann', 'ann')).rejects.toThrow('ECONNREFUSED');
    await expect(obtain('bob', 'bob')).rejects.toThrow('ECONNREFUSED');
    await expect(obtain('eve', 'eve')).rejects.toThrow('ECONNREFUSED');
    expect(asked).toEqual(['ann', 'bob']);
    answer = { result: 'unavailable', detail: 'status 503', blames: 'unsaid' };
    await clock.advance(4000);
    await expect(obtain('eve', 'eve')).rejects.toThrow('503');
    answer = AWAY;
    await expect(obtain('bob', 'bob')).rejects.toThrow('ECONNREFUSED');
    answer = granted('ok');
    expect(await obtain('ann', 'ann')).toBe('Bearer ok');
  });

  it.each<[string, TokenResponse, number]>([
    [
      '403 of what stands before the provider',
      { result: 'rejected', detail: 'status 403', blames: 'unsaid' },
      5,
    ],
    ['401 without a word', { result: 'rejected', detail: 'status 401', blames: 'unsaid' }, 5],
    ['an error of its own', { result: 'rejected', detail: 'status 400 odd_token: no', blames: 'unsaid' }, 5],
    ['500', { result: 'unavailable', detail: 'status 500', blames: 'unsaid' }, 1],
    ['413', { result: 'invalid_response', detail: 'status 413', blames: 'unsaid' }, 1],
    [
      'what is no token',
      { result: 'invalid_response', detail: 'token_type is missing', blames: 'unsaid' },
      1,
    ],
    ['what blames nobody', { result: 'invalid_response', detail: 'status 200 with text/html' }, 1],
    [
      '429 with Retry-After',
      { result: 'unavailable', detail: 'status 429', blames: 'unsaid', retryAfterMs: 3_600_000 },
      60,
    ],
  ])('that one subject may cause affects only that subject: %s', async (_, failure, seconds) => {
    const { asked, tokens, clock } = create((subject) => (subject === 'eve' ? failure : granted('ok')));
    const failed = { code: 'token_unavailable', retryAfterSeconds: seconds };
    await expect(tokens.obtain('eve')).rejects.toMatchObject(failed);
    expect(await tokens.obtain('ann')).toBe('Bearer ok');
    await clock.advance(seconds * 1000 - 1);
    await expect(tokens.obtain('eve')).rejects.toMatchObject(failed);
    expect(asked).toEqual(['eve', 'ann']);
    await clock.advance(1);
    await expect(tokens.obtain('eve')).rejects.toMatchObject(failed);
    expect(asked).toHaveLength(3);
    tokens.forgetFailure();
    await expect(tokens.obtain('eve')).rejects.toMatchObject(failed);
    expect(asked).toHaveLength(4);
  });

  it('is classified by whom it blames, not by its text', async () => {
    const { asked, tokens } = create((subject) => ({
      result: 'rejected',
      detail: 'status 400 invalid_client',
      blames: subject === 'eve' ? 'unsaid' : 'subject',
    }));
    await expect(tokens.obtain('eve')).rejects.toMatchObject({ code: 'token_unavailable' });
    await expect(tokens.obtain('ann')).rejects.toMatchObject({ code: 'subject_token_refused' });
    expect(asked).toEqual(['eve', 'ann']);
  });

  it('that blames the client affects everybody after two subjects in a row', async () => {
    const { asked, tokens, clock } = create((subject) =>
      subject.startsWith('eve') ? CLIENT_REJECTED : subject === 'cyd' ? REFUSED : granted('ok'),
    );
    const rejected = { code: 'token_unavailable', retryAfterSeconds: 30 };
    await expect(tokens.obtain('eve-1')).rejects.toMatchObject(rejected);
    expect(await tokens.obtain('ann')).toBe('Bearer ok');
    await expect(tokens.obtain('eve-2')).rejects.toMatchObject(rejected);
    await expect(tokens.obtain('cyd')).rejects.toMatchObject({ code: 'subject_token_refused' });
    await expect(tokens.obtain('eve-3')).rejects.toMatchObject(rejected);
    expect(tokens.refusesAll).toBe(false);
    await expect(tokens.obtain('eve-4')).rejects.toMatchObject(rejected);
    expect(tokens.refusesAll).toBe(true);
    await expect(tokens.obtain('bob')).rejects.toMatchObject(rejected);
    expect(tokens.current('ann')).toBe('Bearer ok');
    expect(asked).toEqual(['eve-1', 'ann', 'eve-2', 'cyd', 'eve-3', 'eve-4']);
    await clock.advance(30_000);
    expect(await tokens.obtain('bob')).toBe('Bearer ok');
    expect(tokens.refusesAll).toBe(false);
  });

  it('that blames the client, twice for one caller, does not affect other callers', async () => {
    const { asked, tokens } = create((subject) =>
      subject.startsWith('eve') ? CLIENT_REJECTED : granted('ok'),
    );
    for (const subject of ['eve-1', 'eve-2', 'eve-3']) {
      await expect(tokens.obtain(subject, { caller: 'eve' })).rejects.toThrow('invalid_client');
    }
    expect(await tokens.obtain('ann', { caller: 'ann' })).toBe('Bearer ok');
    for (const subject of ['eve-4', 'eve-5']) {
      await expect(tokens.obtain(subject, { caller: subject })).rejects.toThrow('invalid_client');
    }
    await expect(tokens.obtain('bob', { caller: 'bob' })).rejects.toThrow('invalid_client');
    expect(asked.at(-1)).toBe('eve-5');
  });

  it('that blames the client, twice for one caller, affects all subjects of that caller', async () => {
    const { asked, tokens, clock } = create(() => CLIENT_REJECTED);
    for (let user = 0; user < 50; user++) {
      const obtained = tokens.obtain(`user-${user}`, { caller: 'shop' });
      await expect(obtained).rejects.toMatchObject({ code: 'token_unavailable', retryAfterSeconds: 30 });
    }
    expect(asked).toEqual(['user-0', 'user-1']);
    expect(tokens.refusesAll).toBe(false);
    await clock.advance(30_000);
    await expect(tokens.obtain('user-2', { caller: 'shop' })).rejects.toThrow('invalid_client');
    await expect(tokens.obtain('user-3', { caller: 'shop' })).rejects.toThrow('invalid_client');
    expect(asked).toEqual(['user-0', 'user-1', 'user-2']);
  });

  it('that affects everybody is not shortened by an exchange under way for one caller', async () => {
    let release = (): void => undefined;
    const slow = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { asked, tokens } = create(async (subject) => {
      if (subject === 'eve-2') await slow;
      return CLIENT_REJECTED;
    });
    const late = tokens.obtain('eve-2', { caller: 'eve' });
    for (const caller of ['eve', 'ann']) {
      await expect(tokens.obtain(`${caller}-1`, { caller })).rejects.toThrow('invalid_client');
    }
    release();
    await expect(late).rejects.toThrow('invalid_client');
    await expect(tokens.obtain('bob-1', { caller: 'bob' })).rejects.toThrow('invalid_client');
    expect(asked).toEqual(['eve-2', 'eve-1', 'ann-1']);
  });

  it('that blames the client is remembered for 30 s or until the credentials change', async () => {
    const { asked, tokens, clock } = create(() => CLIENT_REJECTED);
    await expect(tokens.obtain('ann')).rejects.toMatchObject({
      code: 'token_unavailable',
      retryAfterSeconds: 30,
    });
    await clock.advance(29_000);
    await expect(tokens.obtain('ann')).rejects.toThrow('invalid_client');
    expect(asked).toHaveLength(1);
    tokens.forgetFailure();
    await expect(tokens.obtain('ann')).rejects.toThrow('invalid_client');
    expect(asked).toHaveLength(2);
  });
});

it('a remembered refusal holds no reference to the refused request', async () => {
  const { tokens } = create(() => REFUSED);
  class Request {
    readonly head = 'x'.repeat(1000);

    async send(): Promise<unknown> {
      return await tokens.obtain('eve').catch((error: Error) => `${error.message} ${this.head}`);
    }
  }
  const send = async (): Promise<WeakRef<Request>> => {
    const request = new Request();
    expect(await request.send()).toContain('invalid_grant');
    return new WeakRef(request);
  };
  const first = await send();
  // Out of what is remembered.
  const second = await send();
  await collectGarbage();
  expect([first.deref(), second.deref()]).toEqual([undefined, undefined]);
});

describe('the queue of token exchanges', () => {
  /** So many exchanges are under way that all others wait. */
  function busy(answer: TokenResponse = granted('ok')) {
    const { promise, resolve } = Promise.withResolvers<TokenResponse>();
    const made = create((subject) => (subject.startsWith('slow') ? promise : answer));
    const slow = Array.from({ length: LINE.atOnce }, (_, n) =>
      made.tokens.obtain(`slow${n}`).catch(() => {}),
    );
    return { ...made, slow, resolve };
  }

  it('drops an exchange when the last request that waits for it has gone', async () => {
    const { tokens, asked, resolve, slow } = busy();
    const [one, two, three] = [new AbortController(), new AbortController(), new AbortController()];
    const dropped = tokens.obtain('bad', { gone: one.signal });
    const ann = [two, three].map(({ signal }) => tokens.obtain('ann', { gone: signal }).catch(() => 'gone'));
    one.abort();
    two.abort();
    await expect(dropped).rejects.toThrow('nobody waits for the exchange any more');
    expect(tokens.exchanging).toBe(LINE.atOnce + 1);
    resolve(granted('late'));
    await Promise.all(slow);
    expect(await Promise.all(ann)).toEqual(['gone', 'Bearer ok']);
    expect(asked.slice(LINE.atOnce)).toEqual(['ann']);
    expect(await tokens.obtain('bad')).toBe('Bearer ok');
  });

  it('begins another exchange for a request that comes as the last one leaves', async () => {
    const { tokens, resolve } = busy();
    const leaving = new AbortController();
    const first = tokens.obtain('ann', { gone: leaving.signal }).catch(() => 'gone');
    leaving.abort();
    const second = tokens.obtain('ann');
    resolve(granted('late'));
    expect(await Promise.all([first, second])).toEqual(['gone', 'Bearer ok']);
  });

  it('lets an exchange under way finish after all requests have gone', async () => {
    const { promise, resolve } = Promise.withResolvers<TokenResponse>();
    const { tokens } = create(() => promise);
    const leaving = new AbortController();
    const asked = tokens.obtain('ann', { gone: leaving.signal });
    await settle();
    leaving.abort();
    await expect(asked).rejects.toThrow('nobody waits for the exchange any more');
    resolve(granted('ok'));
    await settle();
    expect(tokens.current('ann')).toBe('Bearer ok');
  });

  it('times out without blaming the provider or the subject', async () => {
    const { tokens, clock, resolve, slow } = busy();
    const waiting = expect(tokens.obtain('ann')).rejects.toMatchObject({
      code: 'token_unavailable',
      message: expect.stringContaining('the turn of the exchange has not come within 10000 ms'),
    });
    await clock.advance(LINE.timeoutMs);
    await waiting;
    resolve(granted('late'));
    await Promise.all(slow);
    expect(await tokens.obtain('ann')).toBe('Bearer ok');
    expect(clock.pendingTimers).toBe(0);
  });

  it('serves callers in turn and keeps a place for others', async () => {
    const { promise, resolve } = Promise.withResolvers<TokenResponse>();
    const { tokens, asked } = create(() => promise);
    const ask = (caller: string, n: number) => tokens.obtain(`${caller}${n}`, { caller });
    const all = Array.from({ length: 10 }, (_, n) => ask('eve', n));
    all.push(...Array.from({ length: 3 }, (_, n) => ask('ann', n)));
    all.push(...Array.from({ length: 2 }, (_, n) => ask('bob', n)));
    await settle();
    expect(asked.slice(6)).toEqual(['eve6', 'ann0']);
    resolve(granted('ok'));
    await Promise.all(all);
    expect(asked.slice(8)).toEqual(['eve7', 'ann1', 'bob0', 'eve8', 'ann2', 'bob1', 'eve9']);
    expect(tokens.exchanging).toBe(0);
  });

  it('when full, lets a caller with fewer entries displace one with more, but not an equal one', async () => {
    const { promise, resolve } = Promise.withResolvers<TokenResponse>();
    const { tokens, asked } = create(() => promise);
    const outcomes = { eve: 0, ann: 0 };
    const full = 'exchanges are under way';
    const ask = (caller: 'eve' | 'ann', n: number) =>
      tokens.obtain(`${caller}${n}`, { caller }).then(
        () => {
          outcomes[caller] += 1;
        },
        ({ message }: Error) => expect(message).toContain(full),
      );
    const most = MAX_EXCHANGES - LINE.atOnce;
    const all = Array.from({ length: 2 * MAX_EXCHANGES }, (_, n) => ask('eve', n));
    all.push(...Array.from({ length: 2 * MAX_EXCHANGES }, (_, n) => ask('ann', n)));
    await settle();
    expect(asked).toHaveLength(LINE.atOnce);
    resolve(granted('ok'));
    await Promise.all(all);
    expect(outcomes).toEqual({ eve: most / 2 + LINE.atOnce - 1, ann: most / 2 + 1 });
  });

  it('sends no further exchanges to a provider found to be away', async () => {
    const { tokens, asked, resolve } = busy();
    const waiting = expect(tokens.obtain('ann')).rejects.toThrow('ECONNREFUSED');
    resolve(AWAY);
    await waiting;
    expect(asked).toHaveLength(LINE.atOnce);
  });
});

describe('an exchanged token that an upstream refuses', () => {
  it('is exchanged anew once it is 30 s old', async () => {
    const { tokens, clock, asked } = create((_, count) => granted(`t${count}`));
    const first = await tokens.obtain('ann');
    expect(await tokens.replace('ann', first)).toBeUndefined();
    await clock.advance(30_000);
    expect(await tokens.replace('ann', first)).toBe('Bearer t2');
    // Whoever was refused with the first one meanwhile gets the second one.
    expect(await tokens.replace('ann', first)).toBe('Bearer t2');
    expect(asked).toHaveLength(2);
  });

  it.each(['Bearer', 'DPoP'])(
    'has no replacement if the exchange fails or returns the same %s token',
    async (type) => {
      const proofs = new ProofMaker(new ManualClock());
      const again = (): TokenResponse =>
        type === 'Bearer'
          ? granted('t')
          : { ...GRANTED, boundToken: proofs.bind('t', proofs.keyOf(undefined)) };
      const answers = [again(), REFUSED, again()];
      const { tokens, clock } = create((_, count) => answers[count - 1] as TokenResponse);
      const first = await tokens.obtain('ann');
      await clock.advance(30_000);
      expect(await tokens.replace('ann', first)).toBeUndefined();
      await clock.advance(5000);
      expect(await tokens.replace('ann', first)).toBeUndefined();
    },
  );
});

it('an internal fault is not taken for a refusal: the request that replaces a token gets the error', async () => {
  const { tokens } = create(() => {
    throw new Error('out of order');
  });
  await expect(tokens.replace('ann', 'Bearer x')).rejects.toThrow('out of order');
});

describe('the limits of exchanged tokens', () => {
  it('evict the least recently used subject', async () => {
    const { tokens } = create((subject) => granted(subject));
    for (let n = 0; n < MAX_SUBJECTS; n++) await tokens.obtain(`s${n}`);
    expect(tokens.current('s0')).toBeDefined();
    await tokens.obtain('one more');
    expect(tokens.size).toBe(MAX_SUBJECTS);
    expect(tokens.current('s0')).toBeDefined();
    expect(tokens.current('s1')).toBeUndefined();
  });

  it.each<[string, TokenResponse]>([
    ['refusals', REFUSED],
    ['failures', { result: 'unavailable', detail: 'status 500', blames: 'unsaid' }],
  ])('of %s do not take the place of tokens', async (_, failure) => {
    const { tokens, asked } = create((subject) => (subject === 'ann' ? granted('ok') : failure));
    await tokens.obtain('ann');
    for (let n = 0; n < MAX_FAILED + 10; n++) await tokens.obtain(`s${n}`).catch(() => {});
    expect(tokens.size).toBe(MAX_FAILED + 1);
    expect(tokens.current('ann')).toBe('Bearer ok');
    // The last ones are known.
    await expect(tokens.obtain(`s${MAX_FAILED}`)).rejects.toThrow(
      failure.result === 'rejected' ? '400' : '500',
    );
    expect(asked).toHaveLength(MAX_FAILED + 11);
  });

  it('do not count exchanges under way as tokens', async () => {
    const { promise, resolve } = Promise.withResolvers<TokenResponse>();
    const { tokens } = create((subject) => (subject.startsWith('slow') ? promise : granted(subject)));
    for (let n = 0; n < MAX_SUBJECTS - 1; n++) await tokens.obtain(`s${n}`);
    const waiting = Array.from({ length: LINE.atOnce - 1 }, (_, n) =>
      tokens.obtain(`slow${n}`).catch(() => {}),
    );
    await tokens.obtain('one more');
    expect(tokens.current('s0')).toBe('Bearer s0');
    resolve(REFUSED);
    await Promise.all(waiting);
    expect(tokens.size).toBe(MAX_SUBJECTS + LINE.atOnce - 1);
  });

  it('include their total size', async () => {
    const large = 'x'.repeat(64 * 1024);
    const { tokens } = create(() => granted(large));
    const fits = Math.floor(MAX_BYTES / (large.length + 'Bearer '.length));
    for (let n = 0; n < fits + 20; n++) await tokens.obtain(`s${n}`);
    expect(tokens.size).toBe(fits);
  });

  it('include simultaneous exchanges', async () => {
    const { promise, resolve } = Promise.withResolvers<TokenResponse>();
    const { tokens, asked } = create(() => promise);
    const waiting = Array.from({ length: MAX_EXCHANGES }, (_, n) => tokens.obtain(`s${n}`));
    await expect(tokens.obtain('one more')).rejects.toThrow(`${MAX_EXCHANGES} exchanges are under way`);
    expect(asked).toHaveLength(LINE.atOnce);
    resolve(granted('ok'));
    await Promise.all(waiting);
    expect(await tokens.obtain('one more')).toBe('Bearer ok');
    expect(tokens.exchanging).toBe(0);
  });
});
