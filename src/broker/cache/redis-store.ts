/**
 * A Valkey or Redis server as a store of tokens. Its one connection is restored in the background; without it commands fail at
 * once.
 */

import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import {
  ConnectionTimeoutError,
  createClient,
  ErrorReply,
  SocketClosedUnexpectedlyError,
} from '@redis/client';
import { systemCodeOf } from '../../platform/errors.ts';
import { type Logger, withoutRepeatLimit } from '../../platform/log/logger.ts';
import { serverNameOf } from '../../platform/net/address.ts';
import { connectTcp } from '../../platform/net/connect.ts';
import { doublingMs, nextTurn, sleep, within } from '../../platform/time/async.ts';
import type { Clock } from '../../platform/time/clock.ts';
import type { CacheMetrics } from './metrics.ts';
import { MAX_VALUE_LENGTH, NAME_PREFIX } from './sealed-token.ts';
import type { Answer, Found, StoreFailure, TokenStore } from './token-store.ts';

export interface StoreAddress {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

export interface StoreAccess {
  /** PEM; the public CAs if absent. */
  readonly authorities?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

interface RedisStoreOptions {
  readonly address: StoreAddress;
  readonly access: () => StoreAccess;
  /** Bounds each command, from call to answer. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: CacheMetrics;
  readonly log: Logger;
}

/** For a connection attempt, up to the first answer. */
const CONNECT_MS = 1000;
const RETRY = { firstMs: 250, maxMs: 4000 };
const STEADY_MS = 30_000;
/** Unanswered commands. */
const MAX_COMMANDS = 1024;
/** For a handshake, and the little after it. */
const TLS_BYTES = 256 * 1024;
/** The longest answer to a command, in TLS records. */
const ANSWER_BYTES = 2 * MAX_VALUE_LENGTH;

interface Client {
  sendCommand(args: string[]): Promise<unknown>;
  destroy(): void;
}

interface Connection {
  readonly client: Client;
  readonly ended: Promise<StoreFailure>;
  isEnded(): boolean;
  unanswered: number;
  /** Sets how many commands now wait. */
  expects(answers: number): void;
  end(failure: StoreFailure): void;
}

const AWAY = { state: 'away' } as const;
const CLOSED: StoreFailure = { reason: 'unreachable', detail: 'it is used no more' };
const CHANGED: StoreFailure = { reason: 'unreachable', detail: 'what is mounted for it has changed' };
/** Its value does not matter: an answer shows that the login is permitted. */
const PROBE = `${NAME_PREFIX}probe`;

export function openRedisStore(options: RedisStoreOptions): TokenStore {
  const { address, timeoutMs, clock, random, metrics } = options;
  const { host, port } = address;
  const log = options.log.child({ cache: `${host}:${port}` });
  const tried = Promise.withResolvers<void>();
  const closing = new AbortController();
  let connection: Connection | undefined;
  /** Ends the wait before the next attempt. */
  let hurry = new AbortController();
  let told: string | undefined;
  let changes = 0;
  const closed = new Promise<void>((resolve) => closing.signal.addEventListener('abort', () => resolve()));

  async function connect(): Promise<Connection | StoreFailure> {
    const { authorities, username, password } = options.access();
    const ended = Promise.withResolvers<StoreFailure>();
    const socket = { host, port, connectTimeout: CONNECT_MS, reconnectStrategy: false } as const;
    // A server without TLS is on this machine.
    const measured = address.tls ? new BoundedReplySocket(address, TLS_BYTES) : undefined;
    const client = createClient({
      socket: address.tls
        ? {
            ...socket,
            tls: true,
            socket: measured,
            servername: serverNameOf(host),
            rejectUnauthorized: true,
            ...(authorities === undefined ? {} : { ca: authorities }),
          }
        : { ...socket, tls: false },
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      // Works with older servers, and needs no permission beyond the login.
      RESP: 2,
      disableClientInfo: true,
      maintNotifications: 'disabled',
      disableOfflineQueue: true,
      commandsQueueMaxLength: MAX_COMMANDS,
      // The client's own time limit ends once a command is written.
      commandOptions: { timeout: 0 },
    });
    client.on('error', (error: unknown) => ended.resolve(storeFailure(error)));
    // The client reports it later.
    measured?.on('error', () => undefined);
    const destroy = (): void => {
      client.destroy();
      measured?.destroy();
    };
    const open = async (): Promise<true> => {
      await client.connect();
      await client.sendCommand(['PTTL', PROBE]);
      return true;
    };
    const opening = open();
    let isGivenUp = false;
    // An attempt that was given up may still succeed.
    const settled = opening.then(
      () => isGivenUp && destroy(),
      () => destroy(),
    );
    try {
      const opened = await within(CONNECT_MS, opening, clock);
      if (opened === 'late') {
        isGivenUp = true;
        destroy();
        // One at a time, so that at most one hangs.
        await Promise.race([settled, closed]);
        return { reason: 'timeout', detail: `no connection within ${CONNECT_MS} ms` };
      }
    } catch (error) {
      return storeFailure(error);
    }
    let isEnded = false;
    const end = (failure: StoreFailure): void => {
      isEnded = true;
      ended.resolve(failure);
      if (connection?.client === client) connection = undefined;
      destroy();
    };
    const expects = (answers: number): void => measured?.allow(TLS_BYTES + answers * ANSWER_BYTES);
    return { client, ended: ended.promise, isEnded: () => isEnded, unanswered: 0, expects, end };
  }

  async function keepConnected(): Promise<void> {
    let failures = 0;
    while (!closing.signal.aborted) {
      hurry = new AbortController();
      const before = changes;
      const made = await connect();
      if ('client' in made && changes !== before) made.end(CHANGED);
      const failure = 'client' in made ? await serve(made) : made;
      tried.resolve();
      if (closing.signal.aborted) return;
      if (failure === CHANGED) continue;
      if ('steady' in failure) failures = 0;
      metrics.storeFailed(failure.reason);
      tell(failure);
      const retryMs = doublingMs(failures++, RETRY);
      await sleep(clock, retryMs * (0.5 + 0.5 * random()), AbortSignal.any([hurry.signal, closing.signal]));
    }
  }

  async function serve(made: Connection): Promise<StoreFailure & { readonly steady?: true }> {
    const sinceMs = clock.monotonicMs();
    if (closing.signal.aborted) made.end(CLOSED);
    if (!made.isEnded()) {
      connection = made;
      told = undefined;
      log.info('the token cache is connected');
      tried.resolve();
    }
    const failure = await made.ended;
    made.end(failure);
    if (failure === CHANGED || clock.monotonicMs() - sinceMs < STEADY_MS) return failure;
    return { ...failure, steady: true };
  }

  /** Once per reason: "connected" is told each time. */
  function tell({ reason, detail }: StoreFailure): void {
    if (told === detail) return;
    told = detail;
    withoutRepeatLimit(log).warn({ reason, detail }, 'the token cache is away: each replica asks by itself');
  }

  /** @returns `wrong_type` if only this command is wrong. */
  async function ask(args: readonly string[]): Promise<Answer<unknown> | { readonly state: 'wrong_type' }> {
    const asked = connection;
    // With more, the client would report a fault of the connection.
    if (asked === undefined || asked.unanswered >= MAX_COMMANDS) return AWAY;
    asked.unanswered += 1;
    asked.expects(asked.unanswered);
    try {
      const reply = asked.client.sendCommand([...args]).then((value) => ({ value }));
      const inTime = await within(timeoutMs, reply, clock);
      // Timers run before reads: after a herd of handshakes the answer may be read one turn later.
      const answered = inTime === 'late' ? await Promise.race([reply, nextTurn('late' as const)]) : inTime;
      if (answered !== 'late') return { state: 'answered', value: answered.value };
      asked.end({ reason: 'timeout', detail: `no answer within ${timeoutMs} ms` });
    } catch (error) {
      if (error instanceof ErrorReply && errorCodeOf(error) === 'WRONGTYPE') return { state: 'wrong_type' };
      asked.end(storeFailure(error));
    } finally {
      asked.unanswered -= 1;
      asked.expects(asked.unanswered);
    }
    return AWAY;
  }

  /** After a wrong answer no later one can be trusted. */
  async function expect<T>(
    args: readonly string[],
    read: (reply: unknown) => T | undefined,
  ): Promise<Answer<T>> {
    const asked = connection;
    const answer = await ask(args);
    if (answer.state === 'away') return AWAY;
    const value = answer.state === 'answered' ? read(answer.value) : undefined;
    if (value !== undefined) return { state: 'answered', value };
    asked?.end({ reason: 'protocol', detail: `${args[0]} was answered with something else` });
    return AWAY;
  }

  async function readOne(name: string): Promise<Answer<Found>> {
    // If the value is replaced in between, the shorter time counts.
    const [left, range] = await Promise.all([
      expect(['PTTL', name], (reply) => (typeof reply === 'number' ? reply : undefined)),
      ask(['GETRANGE', name, '0', String(MAX_VALUE_LENGTH)]),
    ]);
    if (left.state === 'away' || range.state === 'away') return AWAY;
    const answered = (value: Found): Answer<Found> => ({ state: 'answered', value });
    if (range.state === 'wrong_type') return answered({ kind: 'foreign' });
    const { value } = range;
    if (value === '') return answered({ kind: 'nothing' });
    if (typeof value !== 'string' || value.length > MAX_VALUE_LENGTH) return answered({ kind: 'foreign' });
    // -2: stored in between. -1: without expiry, so no token of the cache.
    if (left.value === -2) return answered({ kind: 'nothing' });
    return answered(left.value < 0 ? { kind: 'foreign' } : { kind: 'value', value, leftMs: left.value });
  }

  metrics.observeStore(() => connection !== undefined);
  const done = keepConnected();

  return {
    tried: tried.promise,
    isConnected: () => connection !== undefined,
    async read(names) {
      const found = await Promise.all(names.map(readOne));
      const values = found.flatMap((one) => (one.state === 'answered' ? [one.value] : []));
      return values.length === names.length ? { state: 'answered', value: values } : AWAY;
    },
    write: (name, value, lifeMs) =>
      expect(['SET', name, value, 'PX', String(lifeMs)], (reply) => (reply === 'OK' ? 'written' : undefined)),
    claim: (name, lifeMs) =>
      expect(['SET', name, '1', 'NX', 'PX', String(lifeMs)], (reply) => {
        if (reply === 'OK') return 'claimed';
        return reply === null ? 'taken' : undefined;
      }),
    remove: (name) => expect(['DEL', name], (reply) => (typeof reply === 'number' ? 'removed' : undefined)),
    reconnect() {
      changes += 1;
      connection?.end(CHANGED);
      hurry.abort();
    },
    async close() {
      closing.abort();
      connection?.end(CLOSED);
      await done;
    },
  };
}

const REFUSALS: Readonly<Record<string, string>> = {
  WRONGPASS: 'it refuses our user and password',
  NOAUTH: 'it wants a password',
  NOPERM: 'our user lacks a right: it needs the commands PTTL, GETRANGE, SET and DEL on our names',
  OOM: 'it has no room: give it a maxmemory-policy that evicts',
  READONLY: 'it is a replica, which takes no values',
  LOADING: 'it is still loading its data',
  MOVED: 'it is one of a cluster, which is not supported',
};

function storeFailure(error: unknown): StoreFailure {
  if (error instanceof ErrorReply) {
    const code = errorCodeOf(error);
    const meaning = code === undefined ? undefined : REFUSALS[code];
    return { reason: 'refused', detail: `${meaning ?? 'it answers with an error'} (${code ?? 'ERR'})` };
  }
  if (error instanceof ConnectionTimeoutError) return { reason: 'timeout', detail: 'no connection in time' };
  if (error instanceof SocketClosedUnexpectedlyError) {
    return { reason: 'unreachable', detail: 'it closed the connection' };
  }
  if (error instanceof UnexpectedBytes)
    return { reason: 'protocol', detail: 'it sends more than it was asked for' };
  const code = systemCodeOf(error);
  if (code !== undefined) return { reason: isOfTls(code) ? 'tls' : 'unreachable', detail: code };
  return { reason: 'protocol', detail: 'it answers with something that is not RESP' };
}

/** The first word, if it is a code of the protocol. */
function errorCodeOf({ message }: ErrorReply): string | undefined {
  return /^[A-Z]{2,20}(?= |$)/.exec(message)?.[0];
}

/** Codes by which OpenSSL and Node distrust a certificate. */
function isOfTls(code: string): boolean {
  return /^ERR_(TLS|SSL|OSSL)|CERT|SIGNATURE|ISSUER|EPROTO|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)/.test(code);
}

const KEEP_ALIVE_AFTER_MS = 30_000;

interface ConnectionAddress {
  readonly host: string;
  readonly port: number;
}

/** Accepts only allowed bytes: the client buffers an answer until it is whole. */
class BoundedReplySocket extends Duplex {
  readonly #socket: Socket;
  #mayCome: number;

  /** @param mayCome bytes, until the next `allow`. */
  constructor({ host, port }: ConnectionAddress, mayCome: number) {
    super();
    this.#mayCome = mayCome;
    const socket = connectTcp({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_AFTER_MS,
    });
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.once('end', () => this.push(null));
    socket.once('error', (error) => this.destroy(error));
    socket.once('close', () => this.destroy());
  }

  allow(bytes: number): void {
    this.#mayCome = bytes;
  }

  #take(chunk: Buffer): void {
    this.#mayCome -= chunk.length;
    if (this.#mayCome < 0) this.destroy(new UnexpectedBytes());
    else if (!this.push(chunk)) this.#socket.pause();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

class UnexpectedBytes extends Error {
  constructor() {
    super('more came than was asked for');
  }
}
