import { describe, expect, it } from 'vitest';
import type { ClientDefinition } from '../../src/issuer/client.ts';
import {
  type ClientAuthentication,
  createClientAuthentication,
} from '../../src/issuer/client-authentication.ts';
import { type ClientStore, createClientStore, defineClients } from '../../src/issuer/client-store.ts';
import { DerivationQueueFull } from '../../src/issuer/derivation-queue.ts';
import { Refusal } from '../../src/issuer/refusal.ts';
import {
  deriveScrypt,
  hashSecret,
  type ScryptCost,
  type ScryptDerivation,
} from '../../src/issuer/scrypt-hash.ts';

const CHEAP: ScryptCost = { ln: 2, r: 1, p: 1 };
const DEARER: ScryptCost = { ln: 3, r: 1, p: 1 };

const field = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;

/** Counts the costs that were paid, which is what the time taken depends on. */
function setUp(clients: readonly ClientDefinition[]): {
  store: ClientStore;
  authenticate: ClientAuthentication;
  costOf(id: string, secret: string): Promise<readonly ScryptCost[]>;
} {
  const store = createClientStore(defineClients(clients));
  let paid: ScryptCost[] = [];
  const derive: ScryptDerivation = (secret, salt, cost, bytes) => {
    paid.push(cost);
    return deriveScrypt(secret, salt, cost, bytes);
  };
  const authenticate = createClientAuthentication(store, derive);
  async function costOf(id: string, secret: string): Promise<readonly ScryptCost[]> {
    paid = [];
    await authenticate(field(id, secret));
    return paid;
  }
  return { store, authenticate, costOf };
}

const HASHED = { clientId: 'hashed', secretHash: await hashSecret('right', CHEAP) };
const CLEAR = { clientId: 'clear', clientSecret: 'right' };

describe('the cost of a check', () => {
  it('is the same for unknown clients, known ones, and every kind of secret', async () => {
    const { costOf } = setUp([HASHED, CLEAR]);
    const [unknown, hashed, clear, rightClear, rightHashed] = [
      await costOf('unknown', 'wrong'),
      await costOf('hashed', 'wrong'),
      await costOf('clear', 'wrong'),
      await costOf('clear', 'right'),
      await costOf('hashed', 'right'),
    ];
    expect(unknown).toEqual([CHEAP]);
    for (const cost of [hashed, clear, rightClear, rightHashed]) expect(cost).toEqual(unknown);
  });

  it('is the same whichever of several hash costs the client has', async () => {
    const dear = { clientId: 'dear', secretHash: await hashSecret('right', DEARER) };
    const { costOf } = setUp([HASHED, dear]);
    for (const id of ['unknown', 'hashed', 'dear']) {
      expect(await costOf(id, 'wrong')).toEqual([CHEAP, DEARER]);
    }
  });

  it('has no hash in it when no client has one', async () => {
    const { costOf } = setUp([CLEAR]);
    expect(await costOf('unknown', 'wrong')).toEqual([]);
    expect(await costOf('clear', 'wrong')).toEqual([]);
  });

  it('depends on the field alone when that can be read in two ways', async () => {
    const { costOf } = setUp([HASHED]);
    expect(await costOf('unknown', 'a%41')).toEqual([CHEAP, CHEAP]);
    expect(await costOf('hashed', 'a%41')).toEqual([CHEAP, CHEAP]);
  });

  it('is paid once for a right secret and each time for a wrong one', async () => {
    const { costOf } = setUp([HASHED]);
    expect(await costOf('hashed', 'right')).toHaveLength(1);
    expect(await costOf('hashed', 'right')).toHaveLength(0);
    expect(await costOf('hashed', 'wrong')).toHaveLength(1);
    expect(await costOf('hashed', 'wrong')).toHaveLength(1);
  });

  it('is shared by requests with the same field at the same time', async () => {
    const { authenticate, costOf } = setUp([HASHED]);
    const both = Promise.all([costOf('hashed', 'right'), authenticate(field('hashed', 'right'))]);
    const [cost, second] = await both;
    expect(cost).toHaveLength(1);
    expect(second.client).toMatchObject({ clientId: 'hashed' });
  });
});

describe('who is let in', () => {
  it('is the client whose secret it is, before and after it is remembered', async () => {
    const { authenticate } = setUp([HASHED, CLEAR]);
    for (const id of ['hashed', 'hashed', 'clear', 'clear']) {
      expect((await authenticate(field(id, 'right'))).client).toMatchObject({ clientId: id });
      expect((await authenticate(field(id, 'wrong'))).client).toBeInstanceOf(Refusal);
    }
  });

  it('never is a wrong reading of a remembered right one', async () => {
    const percent = { clientId: 'percent', secretHash: await hashSecret('a%41', CHEAP) };
    const { authenticate } = setUp([percent]);
    expect((await authenticate(field('percent', 'a%41'))).client).toMatchObject({ clientId: 'percent' });
    // The other reading of that field was wrong, and must not have been remembered.
    expect((await authenticate(field('percent', 'aA'))).client).toBeInstanceOf(Refusal);
  });

  it('changes with the clients, though a secret was remembered', async () => {
    const { store, authenticate } = setUp([HASHED]);
    await authenticate(field('hashed', 'right'));
    store.replace(defineClients([{ clientId: 'hashed', clientSecret: 'new' }]));
    expect((await authenticate(field('hashed', 'right'))).client).toBeInstanceOf(Refusal);
    expect((await authenticate(field('hashed', 'new'))).client).toMatchObject({ clientId: 'hashed' });
  });

  it('names a client for the log only if it is registered', async () => {
    const { authenticate } = setUp([CLEAR]);
    expect(await authenticate(field('clear', 'wrong'))).toMatchObject({ named: 'clear' });
    expect(await authenticate(field('unknown', 'wrong'))).not.toHaveProperty('named');
  });

  it('is nobody while too many wait', async () => {
    const store = createClientStore(defineClients([HASHED]));
    const authenticate = createClientAuthentication(store, () => Promise.reject(new DerivationQueueFull()));
    expect((await authenticate(field('hashed', 'right'))).client).toMatchObject({
      code: 'temporarily_unavailable',
    });
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
