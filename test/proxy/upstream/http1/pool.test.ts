import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Registry } from '../../../../src/platform/prometheus.ts';
import { systemNetwork } from '../../../../src/proxy/io/network.ts';
import { ConnectionOwner, WithoutRequest } from '../../../../src/proxy/streams/contract.ts';
import { OpenUpstreams } from '../../../../src/proxy/upstream/connection-budget.ts';
import { Dialer } from '../../../../src/proxy/upstream/dialer.ts';
import type { UpstreamConnection } from '../../../../src/proxy/upstream/http1/connection.ts';
import { Http1Pool } from '../../../../src/proxy/upstream/http1/pool.ts';
import { captureLog } from '../../../support/log-capture.ts';
import { ManualClock, settle } from '../../../support/manual-clock.ts';
import { testProxyMetrics } from '../../../support/proxy-metrics.ts';
import { get, ok } from '../../../wire/messages.ts';
import { routeTo } from '../../../wire/sidecar.ts';

const TRUST = Number.POSITIVE_INFINITY;
const FIVE_MINUTES = 300_000;

/** Settles `connected` and `ended`; whatever else happens to it is counted. */
class User extends WithoutRequest {
  readonly #connected = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  readonly owner: ConnectionOwner | undefined;
  failures = 0;
  readonly stands = this.#connected.promise;
  readonly served = this.#ended.promise;

  constructor(owner?: ConnectionOwner) {
    super();
    this.owner = owner;
  }

  override onConnected(): void {
    this.#connected.resolve();
  }
  override onEnd(): void {
    this.#ended.resolve();
  }
  override onError(): void {
    this.failures++;
  }
}

async function open({ most = 100, random = 0 } = {}) {
  const accepted = new Set<Socket>();
  const server = createServer((socket) => {
    accepted.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => accepted.delete(socket));
    socket.on('data', () => socket.write(ok('x')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
  const clock = new ManualClock();
  const { log } = captureLog();
  const all = new OpenUpstreams(most);
  const route = routeTo({ address });
  const dialer = new Dialer(route, {
    clock,
    log,
    network: systemNetwork,
    onTlsChange() {},
    observer: testProxyMetrics(new Registry()).forRoute('api'),
  });
  const poolOf = () => new Http1Pool(route, { clock, dialer, all, random: () => random });
  const pool = poolOf();
  onTestFinished(() => {
    pool.close();
    server.close();
  });

  /** A connection that waits for its request. */
  async function lent(
    from = pool,
    owner?: ConnectionOwner,
  ): Promise<{ connection: UpstreamConnection; user: User }> {
    const user = new User(owner);
    const { connection } = from.acquireIdle(user, TRUST) ?? from.acquireFresh(user);
    if (!connection.ready) await user.stands;
    return { connection, user };
  }
  async function serve({ connection, user }: Awaited<ReturnType<typeof lent>>): Promise<UpstreamConnection> {
    connection.begin('GET');
    connection.writer.text(get('/'));
    connection.requestSent(clock.monotonicMs());
    connection.writer.flush();
    await user.served;
    return connection;
  }
  return { pool, poolOf, clock, lent, serve, accepted };
}

describe('the pool of HTTP/1.1 connections', () => {
  it('lends out the most recently used idle connection', async () => {
    const { pool, lent, serve } = await open();
    const [one, two] = [await lent(), await lent()];
    expect(one.connection).not.toBe(two.connection);
    await serve(two);
    await serve(one);
    expect(pool.acquireIdle(new User(), TRUST)?.connection).toBe(one.connection);
    expect(pool.acquireIdle(new User(), TRUST)?.connection).toBe(two.connection);
    expect(pool.acquireIdle(new User(), TRUST)).toBeUndefined();
  });

  it('skips connections that are no longer usable', async () => {
    const { lent, serve } = await open();
    const [one, two] = [await lent(), await lent()];
    await serve(one);
    await serve(two);
    two.connection.socket.destroy();
    expect((await lent()).connection).toBe(one.connection);
  });

  it('makes a new connection when no used one is wanted', async () => {
    const { pool, lent, serve } = await open();
    const used = await serve(await lent());
    expect(pool.acquireFresh(new User()).connection).not.toBe(used);
  });

  it('forgets connections that have ended', async () => {
    const { pool, lent, serve } = await open();
    const connection = await serve(await lent());
    connection.abandon();
    expect(pool.closeOldestIdle()).toBe(false);
    expect(pool.acquireIdle(new User(), TRUST)).toBeUndefined();
  });

  it.each([
    [0, FIVE_MINUTES],
    [0.5, FIVE_MINUTES * 0.9],
    [0.999, FIVE_MINUTES * 0.8 + 60],
  ])('uses a connection for five minutes or up to a fifth less: %f', async (random, ageMs) => {
    const { clock, lent, serve } = await open({ random });
    const first = await serve(await lent());
    // An idle one is closed sooner: it is used all the time.
    for (let age = 50_000; age < ageMs; age += 50_000) {
      await clock.advance(50_000);
      expect(await serve(await lent())).toBe(first);
    }
    await clock.advance((ageMs % 50_000 || 50_000) - 1);
    expect(await serve(await lent())).toBe(first);
    await clock.advance(1);
    expect((await lent()).connection).not.toBe(first);
  });
});

describe('room for other connections', () => {
  it('is made by closing the connection that was idle longest', async () => {
    const { pool, lent, serve } = await open();
    const [one, two] = [await lent(), await lent()];
    const older = await serve(one);
    const newer = await serve(two);
    expect(pool.closeOldestIdle()).toBe(true);
    expect([older.socket.destroyed, newer.socket.destroyed]).toEqual([true, false]);
    expect(pool.closeOldestIdle()).toBe(true);
    expect(newer.socket.destroyed).toBe(true);
    expect(pool.closeOldestIdle()).toBe(false);
  });

  it('is made in another pool too, counting ended connections once', async () => {
    const { poolOf, lent, serve } = await open({ most: 2 });
    const other = poolOf();
    onTestFinished(() => other.close());
    const idle = await serve(await lent());
    const second = await lent(other);
    expect(idle.socket.destroyed).toBe(false);
    second.connection.abandon();
    await once(second.connection.socket, 'close');
    const third = await lent(other);
    expect(idle.socket.destroyed).toBe(false);
    const fourth = await lent(other);
    expect(idle.socket.destroyed).toBe(true);
    expect([third.user.failures, fourth.user.failures]).toEqual([0, 0]);
  });

  it('is not made in a closed pool', async () => {
    const { pool, poolOf, lent, serve } = await open({ most: 1 });
    const busy = await lent();
    pool.drain();
    const other = poolOf();
    onTestFinished(() => other.close());
    const idle = await serve(await lent(other));
    await serve(busy);
    expect(idle.socket.destroyed).toBe(false);
  });
});

describe('an HTTP/1.1 connection with an owner', () => {
  async function owned() {
    const opened = await open();
    const { pool, lent, serve } = opened;
    const ownedBy = async (owner: ConnectionOwner) => {
      const taken = await lent(pool, owner);
      taken.connection.tie();
      return await serve(taken);
    };
    const owner = new ConnectionOwner(undefined);
    return { ...opened, ownedBy, owner, connection: await ownedBy(owner) };
  }

  it('is lent only to its owner', async () => {
    const { pool, lent, serve, owner, connection } = await owned();
    const others = await serve(await lent());
    expect((await lent(pool, new ConnectionOwner(undefined))).connection).toBe(others);
    expect((await lent()).connection).not.toBe(connection);
    expect((await lent(pool, owner)).connection).toBe(connection);
  });

  it('ends with its owner, at once or after its request', async () => {
    const { pool, lent, serve, owner, ownedBy, connection } = await owned();
    const second = new ConnectionOwner(undefined);
    await ownedBy(second);
    const busy = await lent(pool, second);
    owner.end();
    second.end();
    expect([connection.socket.destroyed, busy.connection.socket.destroyed]).toEqual([true, false]);
    await serve(busy);
    expect(busy.connection.socket.destroyed).toBe(true);
    expect(pool.closeOldestIdle()).toBe(false);
  });

  it('makes room for others after those without an owner', async () => {
    const { pool, lent, serve, connection } = await owned();
    const others = await serve(await lent());
    expect(pool.closeOldestIdle()).toBe(true);
    expect([others.socket.destroyed, connection.socket.destroyed]).toEqual([true, false]);
    expect(pool.closeOldestIdle()).toBe(true);
    expect(connection.socket.destroyed).toBe(true);
  });

  it('survives discarding and ends with changed trust or a retired pool', async () => {
    const { pool, owner, ownedBy, connection } = await owned();
    pool.discardIdle();
    expect(connection.socket.destroyed).toBe(false);
    pool.renew();
    expect(connection.socket.destroyed).toBe(true);
    const next = await ownedBy(owner);
    pool.drain();
    expect(next.socket.destroyed).toBe(true);
  });

  it('is closed after a long idle time', async () => {
    const { clock, connection } = await owned();
    await clock.advance(55_000);
    expect(connection.socket.destroyed).toBe(true);
  });
});

describe('a pool of HTTP/1.1 connections', () => {
  it('discards only idle connections on request', async () => {
    const { pool, lent, serve } = await open();
    const busy = await lent();
    const idle = await serve(await lent());
    pool.discardIdle();
    expect(idle.socket.destroyed).toBe(true);
    await serve(busy);
    expect((await lent()).connection).toBe(busy.connection);
  });

  it('closes idle connections when retired, and the others after their requests', async () => {
    const { pool, lent, serve, accepted } = await open();
    const busy = await lent();
    const idle = await serve(await lent());
    pool.drain();
    expect(idle.socket.destroyed).toBe(true);
    expect(busy.connection.socket.destroyed).toBe(false);
    await serve(busy);
    expect(busy.connection.socket.destroyed).toBe(true);
    while (accepted.size > 0) await settle();
  });

  it('closes all connections when closed, and keeps none that is returned', async () => {
    const { pool, lent, serve, accepted } = await open();
    const busy = await lent();
    const idle = await serve(await lent());
    pool.close();
    expect([busy.connection.socket.destroyed, idle.socket.destroyed]).toEqual([true, true]);
    while (accepted.size > 0) await settle();
    const late = await lent();
    late.connection.giveBack();
    expect(late.connection.socket.destroyed).toBe(true);
  });
});
