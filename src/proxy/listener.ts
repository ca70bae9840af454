/**
 * The app side on Node's HTTP server: its limits, its events, and its end.
 */

import http, {
  type IncomingMessage,
  METHODS,
  type Server,
  type ServerOptions,
  ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ListenAddress } from '../config/config.ts';
import { type ProxyErrorCode, SidecarError, systemCodeOf } from '../errors.ts';
import { listenOn } from '../listen.ts';
import { AppConnection } from './app-connection.ts';
import { Exchange } from './exchange.ts';
import { type ForwardingContext, forward } from './forwarding.ts';
import { problemMessage, problemOf } from './problem.ts';
import { framingOf, upgradeOf } from './request-head.ts';
import { EarlyBytes } from './upgrade.ts';

/** Node looks at its header deadlines this often at least; by default only every 30 s. */
const DEADLINE_CHECK_MS = 500;

const HTTP_METHODS: ReadonlySet<string> = new Set(METHODS);

/** The listening side of the proxy. */
export class Listener {
  readonly #context: ForwardingContext;
  readonly #server: Server;
  readonly #connections = new Map<Duplex, AppConnection>();
  readonly #unusedWaiters = new Set<() => void>();
  #drained: Promise<void> | undefined;

  constructor(context: ForwardingContext) {
    this.#context = context;
    this.#server = http.createServer(this.#serverOptions());
    // One above the limit, so that excess fields are seen and refused; Node drops those above its own count in silence.
    this.#server.maxHeadersCount = context.limits.headerCount + 1;
    this.#server.timeout = 0;
    this.#server.maxRequestsPerSocket = 0;
    this.#server.on('connection', (socket) => this.#accept(socket));
    // Whether 100 is sent is the upstream's to say, and any other expectation is the upstream's to judge.
    for (const event of ['request', 'checkContinue', 'checkExpectation']) {
      this.#server.on(event, (incoming, outgoing) => this.#serve(incoming, outgoing));
    }
    this.#server.on('upgrade', (incoming, socket, head) => this.#serveUpgrade(incoming, socket, head));
    this.#server.on('connect', (incoming, socket) => this.#refuseConnect(incoming, socket));
    this.#server.on('clientError', (error, socket) => this.#refuseBytes(error, socket));
  }

  /** @throws {SidecarError} `configuration` when the address cannot be listened on. */
  async listen(listen: ListenAddress): Promise<ListenAddress> {
    const address = await listenOn(this.#server, listen, '--listen');
    this.#server.on('error', (error) => this.#context.log.error({ err: error }, 'listener error'));
    return address;
  }

  /** See `DataPath.drain`. */
  async drain(timeoutMs: number): Promise<void> {
    this.#drained ??= this.#drain();
    // Every call has its bound: a second, shorter one is in more of a hurry.
    const cancel = this.#context.clock.after(timeoutMs, () => {
      for (const { socket } of this.#connections.values()) socket.destroy();
    });
    await this.#drained;
    cancel();
  }

  /** See `DataPath.whenUnused`. */
  whenUnused(boundMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#context.clock.after(boundMs, () => done());
      const done = (): void => {
        cancel();
        this.#unusedWaiters.delete(check);
        resolve();
      };
      const check = (): void => {
        if (this.#connections.size === 0) done();
      };
      this.#unusedWaiters.add(check);
      check();
    });
  }

  #serverOptions(): ServerOptions {
    const { limits } = this.#context;
    return {
      // Long uploads are legal; only heads and idle connections have deadlines.
      requestTimeout: 0,
      headersTimeout: limits.headerTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      keepAliveTimeoutBuffer: 0,
      connectionsCheckingInterval: Math.max(
        20,
        Math.min(DEADLINE_CHECK_MS, Math.ceil(limits.headerTimeoutMs / 4)),
      ),
      maxHeaderSize: limits.headerBytes,
      // Checked with the rest of the head, so that the refusal is ours.
      requireHostHeader: false,
      joinDuplicateHeaders: false,
      insecureHTTPParser: false,
      noDelay: true,
      shouldUpgradeCallback: (incoming) => this.#maySwitch(incoming),
    };
  }

  async #drain(): Promise<void> {
    this.#context.load.draining = true;
    const closed = new Promise<void>((resolve) => {
      // Not http's own `close`, which cuts idle connections at once: a request may be on its way on one of them,
      // and while others are being served there is time to answer it.
      NetServer.prototype.close.call(this.#server, () => resolve());
    });
    this.#closeIfIdle();
    await closed;
    // Ends http's own timers; the callback gets the error that it is closed already, which is what is wanted.
    this.#server.close(() => undefined);
  }

  #closeIfIdle(): void {
    if (!this.#context.load.draining) return;
    const connections = [...this.#connections.values()];
    if (connections.some((connection) => connection.busy)) return;
    for (const { socket } of connections) socket.destroySoon();
  }

  #accept(socket: Socket): void {
    const connection = new AppConnection(socket, this.#context.clock, () => this.#closeIfIdle());
    this.#connections.set(socket, connection);
    socket.on('close', () => {
      this.#connections.delete(socket);
      for (const check of this.#unusedWaiters) check();
      this.#closeIfIdle();
    });
  }

  #serve(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const connection = this.#connections.get(incoming.socket);
    // An answer that ends the connection is on its way; what comes after it has nobody to answer it.
    if (connection === undefined || connection.closing) return;
    forward(new Exchange(connection, incoming, outgoing, this.#context), this.#context);
  }

  #serveUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined || connection.closing) return;
    const outgoing = new ServerResponse(incoming);
    outgoing.shouldKeepAlive = false;
    outgoing.assignSocket(connection.socket);
    socket.on('drain', () => outgoing.emit('drain'));
    outgoing.on('finish', () => connection.socket.destroySoon());
    connection.close();
    const exchange = new Exchange(connection, incoming, outgoing, this.#context);
    const early = new EarlyBytes(socket, head);
    forward(exchange, this.#context, early);
  }

  /** Node gives up a connection to be switched, so nothing else may be going on there, and no body may follow. */
  #maySwitch(incoming: IncomingMessage): boolean {
    if (this.#connections.get(incoming.socket)?.busy) return false;
    const head = { version: incoming.httpVersion, fields: incoming.rawHeaders };
    try {
      return upgradeOf(head, framingOf(head)) !== undefined;
    } catch (error) {
      // Ambiguous framing is refused when the request is served.
      if (error instanceof SidecarError) return false;
      throw error;
    }
  }

  #refuseConnect(incoming: IncomingMessage, socket: Duplex): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined || connection.closing) return;
    this.#refuse(
      connection,
      new SidecarError('destination_not_allowed', 'this listener is not a forward proxy'),
      incoming.method,
    );
  }

  /** Bytes that are no request, or that came too slowly. */
  #refuseBytes(error: Error, socket: Duplex): void {
    const connection = this.#connections.get(socket);
    const code = systemCodeOf(error);
    if (connection === undefined) return;
    const reading = connection.reading;
    if (code === 'ECONNRESET' || (code === 'HPE_INVALID_EOF_STATE' && reading)) {
      socket.destroy();
      return;
    }
    if (reading !== undefined) {
      reading.bodyBroke();
      return;
    }
    // What follows a message that ends the connection is not looked at (RFC 9112 §9.6).
    if (connection.closing || code === 'HPE_CLOSED_CONNECTION') return;
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection.socket.bytesRead === 0) {
      socket.destroy();
      return;
    }
    this.#refuse(connection, refusalOf(error, this.#context));
  }

  /** Answers a request that the server has no message for. */
  #refuse(connection: AppConnection, error: SidecarError<ProxyErrorCode>, method = ''): void {
    const { noRoute } = this.#context;
    const problem = problemOf(error);
    noRoute.error(error.code);
    noRoute.refused(method, problem.status, 0);
    connection.endWith(problemMessage(problem, STATUS_CODES[problem.status] ?? ''));
  }
}

/** What a parser's or the server's complaint means to the app. */
function refusalOf(
  error: Error & { rawPacket?: Buffer },
  { limits }: ForwardingContext,
): SidecarError<ProxyErrorCode> {
  switch (systemCodeOf(error)) {
    case 'HPE_HEADER_OVERFLOW':
      return targetLength(error.rawPacket) > limits.targetBytes
        ? new SidecarError('uri_too_long', `the request target is longer than ${limits.targetBytes} bytes`)
        : new SidecarError(
            'headers_too_large',
            `the header section is larger than ${limits.headerBytes} bytes`,
          );
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new SidecarError(
        'bad_request',
        `the request head did not arrive within ${limits.headerTimeoutMs} ms`,
      );
    default:
      return new SidecarError('bad_request', 'the request is not valid HTTP/1.1');
  }
}

/** Bytes of the target in a packet that starts with a request line; 0 if it starts with none. */
function targetLength(packet: Buffer | undefined): number {
  if (packet === undefined) return 0;
  const methodEnd = packet.indexOf(0x20);
  if (methodEnd < 1 || !HTTP_METHODS.has(packet.toString('latin1', 0, methodEnd))) return 0;
  const targetEnd = packet.indexOf(0x20, methodEnd + 1);
  return (targetEnd === -1 ? packet.length : targetEnd) - methodEnd - 1;
}
