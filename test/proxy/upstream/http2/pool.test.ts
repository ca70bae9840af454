import type { OnReadOpts, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type {
  IncomingRequest,
  UpstreamStream,
  UpstreamUser,
} from '../../../../src/proxy/streams/contract.ts';
import { OpenUpstreams } from '../../../../src/proxy/upstream/connection-budget.ts';
import type { Dialer } from '../../../../src/proxy/upstream/dialer.ts';
import { type Http1Fallback, Http2Pool } from '../../../../src/proxy/upstream/http2/pool.ts';
import { ChosenProtocol } from '../../../../src/proxy/upstream/pools.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { frame, Setting, settings, Type } from '../../../wire/http2/frames.ts';
import { routeTo } from '../../../wire/sidecar.ts';
import { BareSocket } from './bare-connection.ts';

const CONNECT_MS = 3_000;
const TRUST = Number.POSITIVE_INFINITY;
const REQUEST: IncomingRequest = {
  protocol: 'h2',
  method: 'GET',
  target: '/',
  targetForm: 'origin',
  host: 'app.test',
  fields: [],
  connectionOptions: [],
  contentLength: undefined,
};

interface Options {
  /** Connections of all pools at once. */
  readonly most?: number;
  readonly protocols?: readonly string[];
  readonly fallback?: Http1Fallback;
}

/** A pool beneath which is no network: what it dials stands, or fails, when the test says. */
function start({ most = 10, protocols, fallback }: Options = {}) {
  const clock = new ManualClock();
  const all = new OpenUpstreams(most);
  const chosen = new ChosenProtocol(clock, protocols === undefined ? 'h2' : undefined);
  const dialled: { socket: BareSocket & { alpnProtocol?: string | false }; onread: OnReadOpts }[] = [];
  const dialer = {
    dial(onread: OnReadOpts) {
      const socket = new BareSocket();
      dialled.push({ socket, onread });
      return socket as unknown as Socket;
    },
    refusal: () => undefined,
  } as unknown as Dialer;
  const pool = new Http2Pool(
    routeTo({ address: { host: 'up.test', port: 80 } }, { timeouts: { connectMs: CONNECT_MS } }),
    { clock, dialer, all, random: () => 0, protocols, fallback, chosen },
  );
  const told: string[] = [];
  const streams = new Map<string, UpstreamStream>();
  const user = (name: string): UpstreamUser => {
    const tell = (what: string) => void told.push(`${name} ${what}`);
    return {
      onConnected: (instead) => tell(instead === undefined ? 'connected' : 'connected by another'),
      onInterim: () => {},
      onResponse: ({ status }) => tell(`answered ${status}`),
      onSwitched: () => {},
      onData: () => {},
      onEnd: () => {},
      onReadEnd: () => {},
      onDrain: () => {},
      onStalled: () => {},
      onError: (error, delivery) => tell(`${error.code} ${delivery}: ${error.message}`),
    };
  };
  const socketOf = (index: number) => {
    const one = dialled[index];
    if (one === undefined) throw new Error(`no connection ${index} was asked for`);
    return one;
  };
  return {
    all,
    chosen,
    clock,
    pool,
    /** How many connections were asked for. */
    dialled: () => dialled.length,
    told: () => told.splice(0),
    stream: (name: string) => streams.get(name) as UpstreamStream,
    /** Asks for a stream, and says whether it is ready. */
    ask(name: string, how: 'acquire' | 'acquireFresh' | 'acquireForRetry' = 'acquire') {
      const stream =
        how === 'acquire' ? pool.acquire(REQUEST, user(name), TRUST) : pool[how](REQUEST, user(name));
      streams.set(name, stream);
      return stream.ready;
    },
    send(name: string) {
      streams.get(name)?.send(
        {
          from: REQUEST,
          target: '/',
          authority: 'up.test',
          authorization: undefined,
          keepClientAuthorization: false,
          instanceId: 'me',
          upgrade: undefined,
          hasBody: false,
        },
        clock.monotonicMs(),
      );
    },
    socket: (index: number) => socketOf(index).socket,
    stands: (index: number) => void socketOf(index).socket.emit('connect'),
    /** The handshake is over, and this was chosen. */
    secured(index: number, chosen: string | false) {
      const { socket } = socketOf(index);
      socket.emit('connect');
      socket.alpnProtocol = chosen;
      socket.emit('secureConnect');
    },
    fails(index: number) {
      socketOf(index).socket.emit('error', Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
    },
    bring(index: number, octets: Buffer) {
      const { buffer, callback } = socketOf(index).onread;
      octets.copy(buffer as Buffer);
      callback(octets.length, buffer as Buffer);
    },
  };
}

type Pool = ReturnType<typeof start>;

const allow = (streams: number) => settings([Setting.MAX_CONCURRENT_STREAMS, streams]);

/** A pool with one connection on which so many requests may be sent at once. */
function startWith(streams: number, options: Options = {}): Pool {
  const started = start(options);
  started.ask('first');
  started.stands(0);
  started.bring(0, allow(streams));
  started.told();
  return started;
}

describe('requests to the pool of HTTP/2 connections', () => {
  it('wait for one connection while its number of streams is unknown', () => {
    const { ask, dialled, pool, stands, stream, told } = start();
    expect([pool.stands, pool.inUse]).toEqual([false, false]);
    expect(['a', 'b', 'c'].map((name) => ask(name))).toEqual([false, false, false]);
    expect([pool.inUse, dialled()]).toEqual([true, 1]);
    stands(0);
    expect(told()).toEqual(['a connected', 'b connected', 'c connected']);
    expect([stream('c').ready, pool.stands, ask('d'), dialled()]).toEqual([true, true, true, 1]);
  });

  it('use the oldest connection with room', () => {
    const { ask, bring, send, stands, stream, socket } = startWith(1);
    ask('second');
    stands(1);
    bring(1, allow(1));
    stream('first').release();
    stream('second').release();
    expect(ask('third')).toBe(true);
    send('third');
    expect(stream('third').ready).toBe(false);
    expect([socket(0).destroyed, socket(1).destroyed]).toEqual([false, false]);
    expect(ask('fourth')).toBe(true);
  });

  it('that are cancelled are not waited for', () => {
    const { ask, stands, stream, told } = start();
    ask('a');
    ask('b');
    stream('a').cancel();
    stands(0);
    expect(told()).toEqual(['b connected']);
  });

  it('fail with the reason when they wait too long', async () => {
    const { ask, clock, told } = startWith(1, { most: 1 });
    ask('second');
    await clock.advance(CONNECT_MS - 1);
    expect(told()).toEqual([]);
    await clock.advance(1);
    expect(told()).toEqual([
      `second upstream_timeout lost: upstream up.test:80 gave no stream within ${CONNECT_MS} ms`,
    ]);
    const none = start();
    none.ask('a');
    await none.clock.advance(CONNECT_MS);
    expect(none.told()).toEqual([
      `a upstream_timeout lost: upstream up.test:80 gave no connection within ${CONNECT_MS} ms`,
    ]);
  });
});

describe('a new HTTP/2 connection', () => {
  it('is made if asked for, though another is open', () => {
    const { ask, bring, dialled, stands, told } = startWith(10);
    expect([ask('new', 'acquireFresh'), dialled()]).toEqual([false, 2]);
    // Whoever wants any has the one that stands.
    expect(ask('any')).toBe(true);
    bring(0, allow(11));
    expect(told()).toEqual([]);
    stands(1);
    expect(told()).toEqual(['new connected']);
  });

  it('is shared by all that ask while it is being made', () => {
    const { ask, dialled, stands, told } = startWith(10);
    ask('one', 'acquireFresh');
    ask('two', 'acquireFresh');
    expect(dialled()).toBe(2);
    stands(1);
    expect(told()).toEqual(['one connected', 'two connected']);
  });

  it('is made for a refused request if there is only one, otherwise an open one is used', async () => {
    const { ask, bring, dialled, send, stands, told } = startWith(10);
    send('first');
    bring(0, frame(Type.RST_STREAM, 0, 1, '\0\0\0\x07'));
    told();
    expect([ask('again', 'acquireForRetry'), dialled()]).toEqual([false, 2]);
    await turn();
    expect(told()).toEqual([]);
    stands(1);
    expect(told()).toEqual(['again connected']);
    expect([ask('third', 'acquireForRetry'), dialled()]).toEqual([false, 2]);
    await turn();
    expect(told()).toEqual(['third connected']);
  });

  it('that fails fails the requests that wait for it, and no other is tried', () => {
    const { all, ask, dialled, fails, told } = start({ most: 1 });
    ask('a');
    ask('b');
    fails(0);
    expect(told().map((text) => text.split(':')[0])).toEqual([
      'a upstream_unreachable lost',
      'b upstream_unreachable lost',
    ]);
    expect([dialled(), all.mayOpen()]).toEqual([1, true]);
    ask('c');
    expect(dialled()).toBe(2);
  });
});

describe('at the limit of connections', () => {
  it('a request waits for an open HTTP/2 connection', () => {
    const { ask, dialled, stream, told } = startWith(1, { most: 1 });
    expect([ask('second'), dialled()]).toEqual([false, 1]);
    stream('first').release();
    expect(told()).toEqual(['second connected']);
  });

  it('a request without an open connection is refused', () => {
    const { all, ask, told } = start({ most: 1 });
    all.opened();
    expect(() => ask('a')).toThrow(expect.objectContaining({ code: 'overloaded' }));
    expect(told()).toEqual([]);
  });

  it('a new connection is made as soon as there is room', async () => {
    const { all, ask, dialled } = startWith(1, { most: 2 });
    all.opened();
    ask('second');
    expect(dialled()).toBe(1);
    all.closed();
    await turn();
    expect(dialled()).toBe(2);
  });

  it('an idle HTTP/2 connection makes room for others', async () => {
    const { all, ask, pool, socket, stream } = startWith(1, { most: 1 });
    expect(pool.closeOldestIdle()).toBe(false);
    expect(all.mayOpen()).toBe(false);
    stream('first').release();
    expect(pool.closeOldestIdle()).toBe(true);
    await turn();
    expect([socket(0).destroyed, pool.stands, all.mayOpen()]).toEqual([true, false, true]);
    ask('next');
  });
});

describe('the connections of an HTTP/2 pool', () => {
  it('are discarded if they carry nothing, and otherwise stay', async () => {
    const { ask, bring, pool, socket, stands, stream } = startWith(1);
    ask('second');
    stands(1);
    bring(1, allow(1));
    stream('second').release();
    pool.discardIdle();
    await turn();
    expect([socket(0).destroyed, socket(1).destroyed]).toEqual([false, true]);
    expect(pool.stands).toBe(true);
  });

  it('end with their requests when the pool is retired, and an unneeded one is not made', async () => {
    const { all, ask, pool, socket, stream } = startWith(1, { most: 2 });
    ask('second');
    pool.drain();
    // It is still waited for.
    expect([socket(0).destroyed, socket(1).destroyed]).toEqual([false, false]);
    stream('second').cancel();
    expect([socket(0).destroyed, socket(1).destroyed]).toEqual([false, true]);
    stream('first').release();
    await turn();
    expect(socket(0).destroyed).toBe(true);
    all.opened();
    expect(all.mayOpen()).toBe(true);
  });

  it('are all cut without a report when the pool is closed', () => {
    const { all, ask, pool, socket, told } = startWith(1, { most: 2 });
    ask('second');
    pool.close();
    expect([socket(0).destroyed, socket(1).destroyed, told()]).toEqual([true, true, []]);
    all.opened();
    expect(all.mayOpen()).toBe(true);
  });

  it('made before a change are replaced for waiting requests', () => {
    const { ask, dialled, pool, send, socket, stands, told } = startWith(1);
    send('first');
    ask('second');
    pool.renew();
    expect([socket(0).destroyed, socket(1).destroyed, dialled()]).toEqual([false, true, 3]);
    stands(2);
    expect(told()).toEqual(['second connected']);
  });
});

describe('an upstream that chooses by ALPN', () => {
  const H2_OR_1 = ['h2', 'http/1.1'];

  it('HTTP/2 is remembered for a time', async () => {
    const { ask, chosen, clock, secured, told } = start({ protocols: H2_OR_1 });
    expect([chosen.last, chosen.choseWithin(1e9)]).toEqual([undefined, false]);
    ask('a');
    secured(0, 'h2');
    expect([chosen.last, told()]).toEqual(['h2', ['a connected']]);
    await clock.advance(999);
    expect([chosen.choseWithin(1_000), chosen.choseWithin(999)]).toEqual([true, false]);
  });

  it.each<[string | false, string]>([
    ['http/1.1', 'http/1.1'],
    [false, 'nothing'],
  ])('%s although only HTTP/2 is accepted fails the request', (protocol, name) => {
    const { all, ask, chosen, secured, socket, told } = start({ protocols: ['h2'], most: 1 });
    ask('a');
    secured(0, protocol);
    expect(told()).toEqual([expect.stringContaining(`chose ${name} by ALPN`)]);
    expect([chosen.last, socket(0).destroyed, all.mayOpen()]).toEqual(['http1', true, true]);
  });

  it('HTTP/1.1 gets one request on that connection and further connections for the others', () => {
    const lent: string[] = [];
    const fallback: Http1Fallback = {
      lend: () => {
        lent.push('lent');
        return {} as UpstreamStream;
      },
      keep: () => void lent.push('kept'),
    };
    const { ask, dialled, secured, stream, told } = start({ protocols: H2_OR_1, fallback });
    ask('a');
    ask('b');
    expect(dialled()).toBe(1);
    secured(0, 'http/1.1');
    expect([lent, told(), dialled()]).toEqual([['lent'], ['a connected by another'], 2]);
    stream('b').cancel();
    secured(1, 'http/1.1');
    expect(lent).toEqual(['lent', 'kept']);
  });

  it('HTTP/1.1 fails a request that needs HTTP/2, and the next one gets the connection', () => {
    let asked = 0;
    const fallback: Http1Fallback = {
      lend: () => {
        asked++;
        if (asked === 1) throw Object.assign(new Error('needs HTTP/2'), { code: 'upstream_protocol_error' });
        return {} as UpstreamStream;
      },
      keep: () => {},
    };
    const { ask, secured, told } = start({ protocols: H2_OR_1, fallback });
    ask('a');
    ask('b');
    secured(0, 'http/1.1');
    expect(told()).toEqual(['a upstream_protocol_error lost: needs HTTP/2', 'b connected by another']);
  });
});
