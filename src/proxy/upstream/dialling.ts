import { type OnReadOpts, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Clock } from '../../platform/time/clock.ts';
import { Deadline } from '../io/deadline.ts';
import { sharedRead, type TakeBytes } from '../io/shared-read.ts';
import { asProxyError } from '../proxy-error.ts';
import type { Dialer } from './dialer.ts';
import type { UpstreamFailures } from './failures.ts';

interface DiallingOptions {
  readonly dialer: Dialer;
  readonly clock: Clock;
  readonly failures: UpstreamFailures;
  /** Offered by ALPN over TLS; undefined for plain TCP. */
  readonly protocols: readonly string[] | undefined;
  /** Name resolution, TCP and TLS together. */
  readonly connectMs: number;
  /**
   * The connection is open; the callee takes it over at once.
   * @param chosen by the upstream, among those offered.
   */
  onStands(dialling: Dialling, chosen: string | undefined): void;
  onFailed(dialling: Dialling, error: SidecarError<ProxyErrorCode>): void;
}

/** A connection that is being made, before its protocol is known. */
export class Dialling {
  readonly socket: Socket;
  readonly #options: DiallingOptions;
  readonly #deadline: Deadline;
  #phase: 'connecting' | 'securing' | 'over' = 'connecting';
  #take: TakeBytes = () => this.#fail(this.#options.failures.unasked());

  constructor(options: DiallingOptions) {
    const { clock, dialer, failures, protocols, connectMs } = options;
    this.#options = options;
    this.#deadline = new Deadline(clock, () => this.#fail(failures.tooLate('connection', connectMs)));
    this.socket = begun(() =>
      dialer.dial(
        sharedRead((chunk) => this.#take(chunk)),
        protocols,
      ),
    );
    this.socket.once('connect', this.#onConnect);
    this.socket.once('secureConnect', this.#onStands);
    this.socket.on('error', this.#onError);
    this.socket.on('close', this.#onClose);
    // Set last: a deadline that passes at once needs a socket to close.
    this.#deadline.set(clock.monotonicMs() + connectMs);
  }

  /** Hands the connection over: bytes go to `take` from here on, and the taker watches over the connection. */
  handTo(take: TakeBytes): Socket {
    this.#let();
    this.#take = take;
    return this.socket;
  }

  /** The same for a reader in the form of a socket's `onread`. */
  handToReader({ callback }: OnReadOpts): Socket {
    return this.handTo((chunk) => {
      callback(chunk.length, chunk);
    });
  }

  abandon(): void {
    if (this.#phase === 'over') return;
    this.#let();
    // Later errors no longer matter.
    this.socket.on('error', () => this.socket.destroy());
    this.socket.destroy();
  }

  readonly #onConnect = (): void => {
    // Before anything is sent: the answer could come from this program, which would ask the same in turn.
    const refusal = this.#options.dialer.refusal(this.socket);
    if (refusal !== undefined) this.#fail(refusal);
    else if (this.#options.protocols === undefined) this.#onStands();
    else this.#phase = 'securing';
  };

  readonly #onStands = (): void => {
    if (this.#phase === 'over') return;
    const { alpnProtocol: chosen } = this.socket as Partial<TLSSocket>;
    this.#options.onStands(this, typeof chosen === 'string' ? chosen : undefined);
  };

  readonly #onError = (error: Error): void => {
    this.#fail(this.#options.failures.of(error, this.#phase));
  };

  readonly #onClose = (): void => {
    this.#fail(this.#options.failures.closed());
  };

  #fail(error: SidecarError<ProxyErrorCode>): void {
    if (this.#phase === 'over') return;
    this.abandon();
    this.#options.onFailed(this, error);
  }

  #let(): void {
    this.#phase = 'over';
    this.#deadline.dispose();
    this.socket.off('connect', this.#onConnect);
    this.socket.off('secureConnect', this.#onStands);
    this.socket.off('error', this.#onError);
    this.socket.off('close', this.#onClose);
  }
}

/** Node throws at once on an argument that it rejects. The caller learns of it as of any other failure: later, and once. */
function begun(dial: () => Socket): Socket {
  try {
    return dial();
  } catch (error) {
    return new Socket().destroy(asProxyError(error));
  }
}
