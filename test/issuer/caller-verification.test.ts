import { describe, expect, it } from 'vitest';
import { type CallerVerification, createCallerVerification } from '../../src/issuer/caller-verification.ts';
import { type ClientStore, createClientStore, defineClients } from '../../src/issuer/clients.ts';
import { Refusal } from '../../src/issuer/refusal.ts';
import {
  createDerivationQueue,
  DerivationQueueFull,
  deriveScrypt,
  hashSecret,
  type ScryptCost,
  type ScryptDerivation,
} from '../../src/issuer/secret-hashing.ts';
import { captureLog } from '../support/log-capture.ts';
import { ManualClock } from '../support/manual-clock.ts';

type ClientDefinition = Parameters<typeof defineClients>[0][number];

type AuthenticationOutcome = Awaited<ReturnType<CallerVerification>>;

const CHEAP: ScryptCost = { ln: 2, r: 1, p: 1 };

const field = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;

const ADDRESS = '192.0.2.1';
const ELSEWHERE = '192.0.2.2';

interface Attempted {
  readonly outcome: AuthenticationOutcome;
  /** Costs of the derivations that it made. */
  readonly paid: readonly ScryptCost[];
  readonly tookMs: number;
}

interface SetUp {
  readonly clock: ManualClock;
  readonly store: ClientStore;
  readonly lines: readonly string[];
  /** Tries on an idle service, with time passing until there is an answer. */
  attempt(id: string, secret: string, address?: string): Promise<Attempted>;
  readonly authenticate: CallerVerification;
  /** Derivations so far. */
  readonly derived: readonly { readonly secret: string; readonly cost: ScryptCost }[];
}

function setUp(clients: readonly ClientDefinition[], derive: ScryptDerivation = deriveScrypt): SetUp {
  const clock = new ManualClock();
  const store = createClientStore(defineClients(clients));
  const derived: { secret: string; cost: ScryptCost }[] = [];
  const counting: ScryptDerivation = (secret, salt, cost, bytes) => {
    derived.push({ secret, cost });
    return derive(secret, salt, cost, bytes);
  };
  const { log, lines } = captureLog();
  const queue = createDerivationQueue(counting, { concurrent: 2, waiting: 8 });
  const authenticate = createCallerVerification(store, queue, { clock, log });
  async function attempt(id: string, secret: string, address = ADDRESS): Promise<Attempted> {
    const before = derived.length;
    const startedAtMs = clock.monotonicMs();
    let outcome: AuthenticationOutcome | undefined;
    const answered = authenticate(field(id, secret), address).then((result) => {
      outcome = result;
    });
    while (outcome === undefined) {
      await new Promise((resolve) => setTimeout(resolve));
      if (outcome === undefined) await clock.advance(100);
    }
    await answered;
    return {
      outcome,
      paid: derived.slice(before).map(({ cost }) => cost),
      tookMs: clock.monotonicMs() - startedAtMs,
    };
  }
  return { clock, store, lines, attempt, authenticate, derived };
}

const HASHED = { clientId: 'hashed', secretHash: await hashSecret('right', CHEAP) };
const CLEAR = { clientId: 'clear', clientSecret: 'right' };
const refusalOf = ({ outcome }: Attempted): unknown =>
  outcome.client instanceof Refusal ? outcome.client.code : outcome.client.clientId;

describe('a wrong secret', () => {
  it('takes the same work and time for unknown clients, known ones, and every kind of secret', async () => {
    // At once, so that this machine's speed is none of the time.
    const { attempt } = setUp([HASHED, CLEAR], async (_secret, _salt, _cost, bytes) => Buffer.alloc(bytes));
    for (const id of ['unknown', 'hashed', 'clear']) {
      const wrong = await attempt(id, `wrong ${id}`);
      expect(refusalOf(wrong)).toBe('invalid_client');
      expect(wrong.paid).toEqual([CHEAP]);
      expect(wrong.tookMs).toBe(1000);
    }
  });

  it('takes no time when no client has a hash', async () => {
    const { attempt } = setUp([CLEAR]);
    for (const id of ['unknown', 'clear']) {
      const wrong = await attempt(id, 'wrong');
      expect(refusalOf(wrong)).toBe('invalid_client');
      expect(wrong).toMatchObject({ paid: [], tookMs: 0 });
    }
  });

  it('of a client whose check once took long takes that long for everyone', async () => {
    const slow = Promise.withResolvers<void>();
    // By the manual clock alone: a real derivation takes as long as the machine is busy.
    const { attempt, clock } = setUp([HASHED, CLEAR], async (_secret, _salt, _cost, bytes) => {
      await slow.promise;
      return Buffer.alloc(bytes);
    });
    clock.after(1500, slow.resolve);
    expect((await attempt('hashed', 'wrong')).tookMs).toBe(2000);
    expect((await attempt('unknown', 'wrong')).tookMs).toBe(2000);
    expect((await attempt('clear', 'wrong')).tookMs).toBe(2000);
  });

  it('that is repeated is refused without derivation', async () => {
    const { attempt, derived } = setUp([HASHED]);
    await attempt('hashed', 'wrong');
    await attempt('hashed', 'wrong');
    expect(derived.filter(({ secret }) => secret === 'wrong')).toHaveLength(1);
  });
});

describe('a right secret', () => {
  it('in clear is accepted at once, though other clients have hashes', async () => {
    const { attempt } = setUp([HASHED, CLEAR]);
    const right = await attempt('clear', 'right');
    expect(refusalOf(right)).toBe('clear');
    expect(right).toMatchObject({ paid: [], tookMs: 0 });
  });

  it('that is hashed is derived once', async () => {
    const { attempt } = setUp([HASHED]);
    expect((await attempt('hashed', 'right')).paid).toHaveLength(1);
    const again = await attempt('hashed', 'right');
    expect(refusalOf(again)).toBe('hashed');
    expect(again).toMatchObject({ paid: [], tookMs: 0 });
  });

  it('is remembered over a reload in which its hash did not change', async () => {
    const { store, attempt } = setUp([HASHED, CLEAR]);
    await attempt('hashed', 'right');
    store.replace(defineClients([{ ...HASHED, scopes: ['read'] }]));
    const again = await attempt('hashed', 'right');
    expect(again.paid).toEqual([]);
    expect(again.outcome.client).toMatchObject({ clientId: 'hashed', scopes: ['read'] });
  });

  it('is shared by requests with the same field at the same time', async () => {
    const { attempt, authenticate, derived } = setUp([HASHED]);
    const [first, second] = await Promise.all([
      attempt('hashed', 'right'),
      authenticate(field('hashed', 'right'), ADDRESS),
    ]);
    expect(refusalOf(first)).toBe('hashed');
    expect(second.client).toMatchObject({ clientId: 'hashed' });
    expect(derived).toHaveLength(1);
  });

  it('may be either of two, in clear or hashed', async () => {
    const both = {
      clientId: 'both',
      clientSecret: 'old',
      secondSecretHash: await hashSecret('new', CHEAP),
    };
    const { attempt } = setUp([both]);
    for (const secret of ['old', 'new', 'old']) expect(refusalOf(await attempt('both', secret))).toBe('both');
    expect(refusalOf(await attempt('both', 'other'))).toBe('invalid_client');
  });
});

describe('a flood of wrong secrets', () => {
  /** As many as are allowed at once. */
  async function flood({ attempt }: SetUp, id: string, address: string): Promise<void> {
    // Each attempt takes a second, in which one more is allowed.
    const wrong = Array.from({ length: 10 }, (_, index) => attempt(id, `wrong ${index}`, address));
    await Promise.all(wrong);
  }

  it('gets Retry-After without a derivation that delays others', async () => {
    for (const id of ['unknown', 'hashed', 'clear']) {
      const service = setUp([HASHED, CLEAR]);
      const all = Promise.all(
        Array.from({ length: 30 }, (_, index) => service.authenticate(field(id, `wrong ${index}`), ADDRESS)),
      );
      let answered = false;
      void all.then(() => {
        answered = true;
      });
      while (!answered) {
        await new Promise((resolve) => setTimeout(resolve));
        if (!answered) await service.clock.advance(100);
      }
      const codes = (await all).map(({ client }) => (client instanceof Refusal ? client : undefined));
      const tooMany = codes.filter((refusal) => refusal?.code === 'too_many_requests');
      expect(tooMany).toHaveLength(20);
      expect(tooMany.every((refusal) => refusal?.retryAfterSeconds === 1)).toBe(true);
    }
  });

  it('does not lock out a secret in clear or a remembered one', async () => {
    const service = setUp([HASHED, CLEAR]);
    await service.attempt('hashed', 'right');
    await flood(service, 'hashed', ADDRESS);
    await flood(service, 'clear', ADDRESS);
    expect(refusalOf(await service.attempt('hashed', 'right'))).toBe('hashed');
    expect(refusalOf(await service.attempt('clear', 'right'))).toBe('clear');
  });

  it('touches neither another client at that address nor that client elsewhere', async () => {
    const other = { clientId: 'other', secretHash: await hashSecret('right', CHEAP) };
    const service = setUp([HASHED, other]);
    await flood(service, 'hashed', ADDRESS);
    expect(refusalOf(await service.attempt('other', 'right', ADDRESS))).toBe('other');
    expect(refusalOf(await service.attempt('hashed', 'right', ELSEWHERE))).toBe('hashed');
  });

  it('does not hide a right secret for long: a refused secret is checked meanwhile', async () => {
    const { authenticate, clock } = setUp([HASHED]);
    const wrong = Array.from({ length: 10 }, (_, index) =>
      authenticate(field('hashed', `wrong ${index}`), ADDRESS),
    );
    const drained = Promise.all(wrong.map((each) => each.catch(() => undefined)));
    // Until nothing is derived any more; the clock stands, so the limit stays reached.
    let told = await authenticate(field('hashed', 'right'), ADDRESS);
    expect(told.client).toMatchObject({ code: 'too_many_requests' });
    while (told.client instanceof Refusal) {
      await new Promise((resolve) => setTimeout(resolve));
      told = await authenticate(field('hashed', 'right'), ADDRESS);
    }
    expect(told.client).toMatchObject({ clientId: 'hashed' });
    await clock.advance(10_000);
    await drained;
  });

  it('with one and the same field is stopped by its address, and by no other', async () => {
    const gate = Promise.withResolvers<void>();
    const { authenticate, clock } = setUp([HASHED], async (...work) => {
      await gate.promise;
      return await deriveScrypt(...work);
    });
    const codes: (string | undefined)[] = [];
    const ask = async (address: string): Promise<void> => {
      const { client } = await authenticate(field('hashed', 'wrong'), address);
      codes.push(client instanceof Refusal ? client.code : undefined);
    };
    const all = Promise.all(Array.from({ length: 1000 }, () => ask(ADDRESS)));
    const elsewhere = ask(ELSEWHERE);
    await new Promise((resolve) => setTimeout(resolve));
    expect(codes).toEqual(Array.from({ length: 1000 - 257 }, () => 'too_many_requests'));
    gate.resolve();
    let answered = false;
    void Promise.all([all, elsewhere]).then(() => {
      answered = true;
    });
    while (!answered) await clock.advance(100);
    expect(codes.filter((code) => code === 'invalid_client')).toHaveLength(258);
  });

  it('over many client ids is stopped by its address', async () => {
    const { authenticate } = setUp([CLEAR]);
    const codes: string[] = [];
    for (let index = 0; index < 120; index++) {
      const { client } = await authenticate(field(`nobody-${index}`, 'x'), ADDRESS);
      if (client instanceof Refusal) codes.push(client.code);
    }
    expect(codes.filter((code) => code === 'too_many_requests')).toHaveLength(20);
    expect((await authenticate(field('nobody', 'x'), ELSEWHERE)).client).toMatchObject({
      code: 'invalid_client',
    });
  });

  it('is not made by other spellings of one id', async () => {
    const { authenticate } = setUp([CLEAR]);
    const writings = ['clear', '%63lear', 'c%6Cear', 'cl%65ar'];
    const outcomes = [];
    for (let index = 0; index < 12; index++) {
      const id = writings[index % 4] as string;
      outcomes.push((await authenticate(field(id, 'x'), ADDRESS)).client);
    }
    expect(outcomes.at(-1)).toMatchObject({ code: 'too_many_requests' });
  });

  it('does not count errors of hashing', async () => {
    const { authenticate } = setUp([HASHED], () => Promise.reject(new Error('out of memory')));
    for (let index = 0; index < 20; index++) {
      await expect(authenticate(field('hashed', `${index}`), ADDRESS)).rejects.toThrow('out of memory');
    }
  });
});

describe('the accepted client', () => {
  it('is the client whose secret it is, before and after it is remembered', async () => {
    const { attempt } = setUp([HASHED, CLEAR]);
    for (const id of ['hashed', 'hashed', 'clear', 'clear']) {
      expect(refusalOf(await attempt(id, 'right'))).toBe(id);
      expect(refusalOf(await attempt(id, 'wrong'))).toBe('invalid_client');
    }
  });

  it('is never accepted by a wrong reading of a remembered secret', async () => {
    const percent = { clientId: 'percent', secretHash: await hashSecret('a%41', CHEAP) };
    const { attempt } = setUp([percent]);
    expect(refusalOf(await attempt('percent', 'a%41'))).toBe('percent');
    // The other reading of that field was wrong, and must not have been remembered.
    expect(refusalOf(await attempt('percent', 'aA'))).toBe('invalid_client');
  });

  it('changes with the client file, though a secret was remembered', async () => {
    const { store, attempt } = setUp([HASHED]);
    await attempt('hashed', 'right');
    store.replace(defineClients([{ clientId: 'hashed', clientSecret: 'new' }]));
    expect(refusalOf(await attempt('hashed', 'right'))).toBe('invalid_client');
    expect(refusalOf(await attempt('hashed', 'new'))).toBe('hashed');
    store.replace(defineClients([{ clientId: 'hashed', secretHash: await hashSecret('newer', CHEAP) }]));
    expect(refusalOf(await attempt('hashed', 'right'))).toBe('invalid_client');
  });

  it('is the one that has the secret now, also if the file changed during the check', async () => {
    const held = Promise.withResolvers<void>();
    const { attempt, authenticate, store, derived } = setUp([HASHED], async (...work) => {
      if (derived.length === 1) await held.promise;
      return await deriveScrypt(...work);
    });
    void authenticate(field('hashed', 'new'), ELSEWHERE);
    store.replace(defineClients([{ ...HASHED, secretHash: await hashSecret('new', CHEAP) }]));
    expect(derived).toHaveLength(1);
    const now = attempt('hashed', 'new');
    held.resolve();
    expect(refusalOf(await now)).toBe('hashed');
  });

  it('is the one that is registered when the check ends', async () => {
    const gates: (() => void)[] = [];
    const { store, authenticate, clock } = setUp([HASHED], async (...work) => {
      await new Promise<void>((resolve) => gates.push(resolve));
      return await deriveScrypt(...work);
    });
    const removed = authenticate(field('hashed', 'right'), ADDRESS);
    store.replace(defineClients([CLEAR]));
    gates.shift()?.();
    let refused: AuthenticationOutcome | undefined;
    void removed.then((outcome) => {
      refused = outcome;
    });
    while (refused === undefined) await clock.advance(100);
    expect(refused.client).toMatchObject({ code: 'invalid_client' });

    store.replace(defineClients([HASHED]));
    const changed = authenticate(field('hashed', 'right'), ADDRESS);
    store.replace(defineClients([{ ...HASHED, scopes: ['read'] }]));
    // What was found right before its hash was gone is not remembered.
    expect(gates).toHaveLength(1);
    gates.shift()?.();
    expect(await changed).toMatchObject({ client: { clientId: 'hashed', scopes: ['read'] } });
  });

  it('names a client for the log only if it is registered', async () => {
    const { attempt } = setUp([CLEAR]);
    expect((await attempt('clear', 'wrong')).outcome).toMatchObject({ named: 'clear' });
    expect((await attempt('unknown', 'wrong')).outcome).not.toHaveProperty('named');
  });

  it('is none while too many wait', async () => {
    const { attempt } = setUp([HASHED], () => Promise.reject(new DerivationQueueFull()));
    expect(refusalOf(await attempt('hashed', 'right'))).toBe('temporarily_unavailable');
  });
});

describe('a set of clients', () => {
  it.each([
    ['the same id twice', 'a', 'a'],
    ['an id that is the form-encoded writing of another', 'a%2Bb', 'a+b'],
    ['an id that is another with a plus for a space', 'a+b', 'a b'],
  ])('refuses %s', (_name, first, second) => {
    const ids = [first, second];
    expect(() => defineClients(ids.map((clientId) => ({ clientId, clientSecret: 'x' })))).toThrow(
      /client id/,
    );
  });
});
