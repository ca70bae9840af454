import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import type { RouteConfig } from '../config/config.ts';
import { messageOf, type ProxyErrorCode, SidecarError, systemCodeOf } from '../errors.ts';
import { type Fields, listMembers } from './header-rules.ts';

/** A final answer's head; its body has not been read. */
export interface UpstreamAnswer {
  readonly attempt: UpstreamAttempt;
  readonly message: IncomingMessage;
  /** There when the upstream switched protocols (101): the connection, and the bytes that came with the head. */
  readonly tunnel?: { readonly socket: Duplex; readonly head: Buffer };
}

export interface AttemptOptions {
  readonly route: RouteConfig;
  readonly clock: Clock;
  /** The request asks to switch protocols. */
  readonly mayUpgrade: boolean;
  /** Called for every informational answer but 101. */
  onInformation(status: number, fields: Fields): void;
}

type Phase = 'connecting' | 'securing' | 'open';

/** One sending of a request to the upstream, until the head of its final answer. */
export class UpstreamAttempt {
  readonly request: ClientRequest;
  /** Rejects with a SidecarError of one of the upstream codes. */
  readonly answer: Promise<UpstreamAnswer>;
  readonly #options: AttemptOptions;
  #phase: Phase = 'connecting';
  #bytesReadBefore = 0;
  #cancelTimer: (() => void) | undefined;
  #answered = false;

  constructor(request: ClientRequest, options: AttemptOptions) {
    this.request = request;
    this.#options = options;
    this.answer = new Promise((resolve, reject) => {
      const settle = (): void => {
        this.#answered = true;
        this.#stopTimer();
      };
      request.on('socket', (socket) => this.#connect(socket));
      request.on('finish', () => {
        if (!this.#answered) this.#startTimer(options.route.timeouts.responseMs, 'no answer');
      });
      request.on('information', ({ statusCode, rawHeaders }) => {
        options.onInformation(statusCode, rawHeaders);
      });
      request.on('response', (message) => {
        settle();
        // Node's parser believes that an answer to HEAD without a length ends with the connection.
        if (request.method === 'HEAD' && persists(message)) request.shouldKeepAlive = true;
        resolve({ attempt: this, message });
      });
      request.on('upgrade', (message, socket, head) => {
        settle();
        if (!options.mayUpgrade) {
          socket.destroy();
          reject(this.#failure('upstream_protocol_error', 'switched protocols without being asked'));
          return;
        }
        resolve({ attempt: this, message, tunnel: { socket, head } });
      });
      request.on('error', (error) => {
        settle();
        reject(error instanceof SidecarError ? error : this.#classify(error));
      });
      request.on('close', () => {
        settle();
        reject(this.#failure('upstream_protocol_error', 'closed the connection without an answer'));
      });
    });
  }

  /** Whether a connection that had been idle ended without a byte of an answer: most likely closed meanwhile. */
  get diedUnanswered(): boolean {
    const { request } = this;
    return request.reusedSocket && (request.socket?.bytesRead ?? 0) === this.#bytesReadBefore;
  }

  /** Cuts the connection, unless the exchange on it is over. */
  abandon(): void {
    this.request.destroy();
  }

  #connect(socket: NonNullable<ClientRequest['socket']>): void {
    this.#bytesReadBefore = socket.bytesRead;
    if (this.request.reusedSocket) {
      this.#phase = 'open';
      return;
    }
    const { route } = this.#options;
    this.#startTimer(route.timeouts.connectMs, 'no connection');
    const open = (): void => {
      this.#phase = 'open';
      // The request may have been flushed, and its timer started, within the same event.
      if (!this.request.writableFinished) this.#stopTimer();
    };
    socket.once('connect', () => {
      if (route.upstream.protocol === 'http') open();
      else this.#phase = 'securing';
    });
    socket.once('secureConnect', open);
  }

  #startTimer(delayMs: number, what: string): void {
    this.#stopTimer();
    this.#cancelTimer = this.#options.clock.after(delayMs, () => {
      this.request.destroy(this.#failure('upstream_timeout', `gave ${what} within ${delayMs} ms`));
    });
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #classify(error: Error): SidecarError<ProxyErrorCode> {
    const reason = systemCodeOf(error) ?? messageOf(error);
    if (this.#phase === 'connecting') {
      const code = systemCodeOf(error) === 'ETIMEDOUT' ? 'upstream_timeout' : 'upstream_unreachable';
      return this.#failure(code, `could not be reached: ${reason}`, error);
    }
    if (this.#phase === 'securing') {
      return this.#failure('upstream_tls_error', `failed the TLS handshake: ${reason}`, error);
    }
    return this.#failure('upstream_protocol_error', `broke off before an answer: ${reason}`, error);
  }

  #failure(code: ProxyErrorCode, what: string, cause?: unknown): SidecarError<ProxyErrorCode> {
    const { route } = this.#options;
    return new SidecarError(code, `upstream ${route.upstream.authority} ${what}`, { cause });
  }
}

function persists(message: IncomingMessage): boolean {
  const options = listMembers(message.rawHeaders, 'connection').map((option) => option.toLowerCase());
  return message.httpVersion === '1.1' && !options.includes('close');
}
