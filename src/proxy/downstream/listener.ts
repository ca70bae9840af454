import type { Server, Socket } from 'node:net';
import { SidecarError } from '../../platform/errors.ts';
import type { ListenAddress } from '../../platform/net/address.ts';
import { listenOn } from '../../platform/net/listen.ts';
import type { Protocol } from '../http/messages.ts';
import { DenseSet } from '../io/collections.ts';
import { dropConnection, sharesAcceptedReads } from '../io/sockets.ts';
import { isDraining } from '../transaction/admission.ts';
import { localReplyMessage, problemOf } from '../transaction/local-reply.ts';
import { AcceptedConnection } from './accepted-connection.ts';
import type { DownstreamConnection, DownstreamContext } from './connection.ts';
import { mostConnections, processLimits } from './connection-limit.ts';

/** Closing a refused connection at once could destroy its answer by a reset. */
const LINGER_MS = 1_000;

/** More at once are closed silently. */
const MAX_REFUSED = 16;

export interface Service {
  /** Names the address in errors. */
  readonly what: string;
  /** Whether a connection over the limit is told so, in HTTP/1.1; false for TLS. */
  readonly clear: boolean;
  /** Of all addresses together. */
  readonly mostConnections?: number;
  /**
   * @param onFree to be called whenever a request is settled.
   * @returns undefined if the connection was closed instead.
   */
  readonly open: (accepted: Socket, onFree: () => void) => DownstreamConnection | undefined;
}

export class Listener {
  readonly #context: DownstreamContext;
  readonly #servers = new Set<Server>();
  readonly #connections = new DenseSet<DownstreamConnection>();
  /** By the process's descriptors. */
  readonly #possibleConnections = mostConnections(undefined, processLimits());
  readonly #refused = new Set<Socket>();
  #full = false;
  readonly #unusedWaiters = new Set<() => void>();
  #drained: Promise<void> | undefined;

  constructor(context: DownstreamContext) {
    this.#context = context;
  }

  /**
   * @param service the proxy's own unless given.
   * @throws {SidecarError} `configuration` when the address cannot be listened on.
   */
  async listen(listen: ListenAddress, service: Service = this.#own): Promise<ListenAddress> {
    // Node would answer a client's half-close by ending the connection.
    const server = this.#context.network.createServer({ allowHalfOpen: true, noDelay: true }, (accepted) =>
      this.#accept(accepted, service),
    );
    const address = await listenOn(server, listen, service.what);
    this.#servers.add(server);
    server.on('error', (error) => this.#context.log.error({ err: error }, 'listener error'));
    if (!sharesAcceptedReads && this.#servers.size === 1) {
      this.#context.log.info('connections are read by events, which costs more: this Node is unknown');
    }
    return address;
  }

  spoken(): ReadonlyMap<string, Protocol | undefined> {
    return this.#context.snapshot().destinations.spoken();
  }

  enterLameDuck(): void {
    const { load } = this.#context;
    if (load.phase === 'serving') load.phase = 'leaving';
    for (const connection of this.#connections) connection.drain();
  }

  async drain(timeoutMs: number): Promise<void> {
    this.#drained ??= this.#drain();
    // Each call has its own bound: the shorter one counts.
    const cancel = this.#context.clock.after(timeoutMs, () => {
      this.#context.load.phase = 'cutting';
      for (const { socket } of this.#connections) dropConnection(socket);
      for (const socket of this.#refused) socket.destroy();
    });
    await this.#drained;
    cancel();
    // Those in use now.
    this.#context.snapshot().destinations.close();
  }

  whenUnused(boundMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        this.#unusedWaiters.delete(done);
        resolve();
      };
      const cancel = this.#context.clock.after(boundMs, done);
      this.#callWhenUnused(done);
    });
  }

  async #drain(): Promise<void> {
    this.#context.load.phase = 'finishing';
    const unlistened = [...this.#servers].map(
      (server) => new Promise<void>((resolve) => server.close(() => resolve())),
    );
    const unused = new Promise<void>((resolve) => this.#callWhenUnused(resolve));
    for (const connection of this.#connections) connection.drain();
    this.#closeIfIdle();
    await Promise.all([...unlistened, unused]);
  }

  #callWhenUnused(done: () => void): void {
    if (this.#connections.size === 0) done();
    else this.#unusedWaiters.add(done);
  }

  /** Idle connections stay while requests are served: a request on its way learns of the drain. */
  #closeIfIdle(): void {
    if (!isDraining(this.#context.load)) return;
    for (const { busy } of this.#connections) if (busy) return;
    for (const connection of this.#connections) connection.closeIdle();
  }

  #mostConnections({ mostConnections = Number.POSITIVE_INFINITY }: Service): number {
    const { maxConnections = Number.POSITIVE_INFINITY } = this.#context.snapshot().limits;
    return Math.min(this.#possibleConnections, maxConnections, mostConnections);
  }

  get #own(): Service {
    return {
      what: '--listen',
      clear: true,
      open: (accepted, onFree) => new AcceptedConnection(accepted, this.#context, onFree),
    };
  }

  #accept(accepted: Socket, service: Service): void {
    const most = this.#mostConnections(service);
    if (this.#connections.size >= most) {
      this.#refuse(accepted, most, service.clear);
      return;
    }
    this.#full = false;
    const connection = service.open(accepted, () => this.#closeIfIdle());
    if (connection === undefined) return;
    this.#connections.add(connection);
    connection.socket.on('close', () => {
      this.#connections.delete(connection);
      this.#closeIfIdle();
      if (this.#connections.size > 0) return;
      for (const done of this.#unusedWaiters) done();
      this.#unusedWaiters.clear();
    });
  }

  /** Open connections and probes need its descriptors. */
  #refuse(accepted: Socket, most: number, clear: boolean): void {
    const { noRoute, clock, log } = this.#context;
    const error = new SidecarError('overloaded', `${most} connections are open`);
    if (!this.#full) log.warn({ connections: most }, 'connections refused: too many are open');
    this.#full = true;
    const problem = problemOf(error);
    noRoute.turnedAway(error.code, problem.status, 'http1');
    if (!clear || this.#refused.size >= MAX_REFUSED) {
      accepted.destroy();
      return;
    }
    this.#refused.add(accepted);
    const cancel = clock.after(LINGER_MS, () => accepted.destroy());
    // Every end emits 'close'.
    accepted.on('error', () => accepted.destroy());
    accepted.on('close', () => {
      cancel();
      this.#refused.delete(accepted);
    });
    accepted.end(localReplyMessage(problem, '', true), 'latin1');
    accepted.resume();
  }
}
