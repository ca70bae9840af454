import type { Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import { type CountedErrorCode, SidecarError, systemCodeOf } from '../../platform/errors.ts';
import type { Clock } from '../../platform/time/clock.ts';
import { rejectionOf } from '../../platform/x509/rejection.ts';
import type { Protocol } from '../http/messages.ts';
import { Deadline } from '../io/deadline.ts';
import type { DetachedConnection } from '../streams/contract.ts';
import { MAX_HELLO_BYTES, readClientHello } from './client-hello.ts';

const HANDSHAKE_MS = 10_000;

/** The fatal alert unrecognized_name, unencrypted (RFC 8446 §6). */
const UNRECOGNIZED_NAME = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

interface HandshakeOptions {
  readonly connection: Pick<DetachedConnection, 'socket' | 'takeOver'>;
  readonly clock: Clock;
  /** Lower-case. */
  readonly host: string;
  readonly contextFor: (host: string) => SecureContext;
  /** Undefined if unknown. */
  readonly spoken: () => Protocol | undefined;
  /** Asks the upstream; calls back once unless ended by the returned function. */
  readonly ask: (onKnown: (spoken: Protocol | undefined) => void) => () => void;
  /** Called in the turn in which the handshake ended. */
  readonly onSecured: (socket: TLSSocket) => void;
  readonly onFailed: (error: SidecarError<CountedErrorCode>) => void;
}

type Phase =
  /** The ClientHello is incomplete. */
  | { readonly kind: 'reading'; readonly octets: Buffer }
  /** The upstream is asked what it speaks. Reading goes on, so that the app's leaving is noticed. */
  | { readonly kind: 'asking'; readonly end: () => void; readonly octets: Buffer }
  | { readonly kind: 'securing'; readonly tls: TLSSocket }
  | { readonly kind: 'over' };

const OVER: Phase = { kind: 'over' };

/** The name is checked and the upstream asked before a certificate is shown. */
export class Handshake {
  readonly #options: HandshakeOptions;
  readonly #socket: Socket;
  readonly #deadline: Deadline;
  #phase: Phase = { kind: 'reading', octets: Buffer.alloc(0) };

  constructor(options: HandshakeOptions) {
    const { connection, clock } = options;
    this.#options = options;
    this.#socket = connection.socket;
    this.#deadline = new Deadline(clock, () =>
      this.#fail('client_tls_error', `was not over in ${HANDSHAKE_MS} ms`),
    );
    this.#deadline.set(clock.monotonicMs() + HANDSHAKE_MS);
    this.#socket.on('end', this.#onEnd);
    this.#socket.on('close', this.#onClose);
    this.#socket.resume();
    const early = connection.takeOver((chunk) => this.#read(chunk));
    if (early !== undefined) this.#read(early);
    // Already ended: no event will follow.
    if (this.#socket.readableEnded) this.#onEnd();
  }

  // TLS reports its own end.
  readonly #onEnd = (): void => {
    if (this.#phase.kind !== 'securing') this.#fail('client_tls_error', 'was given up by the app');
  };

  readonly #onClose = (): void => {
    if (this.#phase.kind !== 'securing') this.#fail('client_tls_error', 'ended with the connection');
  };

  #read(chunk: Buffer): void {
    const phase = this.#phase;
    if (phase.kind !== 'reading' && phase.kind !== 'asking') return;
    const octets = Buffer.concat([phase.octets, chunk]);
    if (phase.kind === 'asking') {
      // A client waits after its ClientHello.
      if (octets.length <= 2 * MAX_HELLO_BYTES) this.#phase = { ...phase, octets };
      else this.#fail('client_tls_error', 'went on without waiting for an answer');
      return;
    }
    const hello = readClientHello(octets);
    switch (hello.kind) {
      case 'partial':
        this.#phase = { kind: 'reading', octets };
        break;
      case 'malformed':
        this.#fail('client_tls_error', `began with ${hello.why}`);
        break;
      case 'hello':
        this.#answer(octets, hello.serverName, hello.protocols);
    }
  }

  #answer(octets: Buffer, serverName: string | undefined, offered: readonly string[] | undefined): void {
    const { host, spoken, ask } = this.#options;
    if (serverName !== undefined && serverName !== host) {
      this.#socket.write(UNRECOGNIZED_NAME);
      this.#fail('server_name_mismatch', 'asks for another name (SNI)');
      return;
    }
    const known = spoken();
    if (known !== undefined || !mustAskUpstream(offered)) {
      this.#secure(octets, offered, known);
      return;
    }
    let answered = false;
    const end = ask((found) => {
      answered = true;
      const phase = this.#phase;
      if (phase.kind === 'over') return;
      this.#secure(phase.kind === 'asking' ? phase.octets : octets, offered, found);
    });
    if (!answered) this.#phase = { kind: 'asking', end, octets };
  }

  #secure(octets: Buffer, offered: readonly string[] | undefined, spoken: Protocol | undefined): void {
    const { clock, host, contextFor } = this.#options;
    const protocols = chooseProtocol(offered, spoken);
    // OpenSSL gets what was already read first.
    this.#socket.pause();
    this.#socket.unshift(octets);
    const tls = new TLSSocket(this.#socket, {
      isServer: true,
      secureContext: contextFor(host),
      ...(protocols === undefined ? {} : { ALPNProtocols: protocols }),
    });
    this.#phase = { kind: 'securing', tls };
    const shownAtMs = clock.monotonicMs();
    let failure: Error | undefined;
    tls.on('error', (error) => {
      failure ??= error;
      tls.destroy();
    });
    // Node reports TLS errors after the handshake only here, and leaves the socket open.
    tls.on('_tlsError', () => {
      if (this.#phase.kind === 'over') tls.destroy();
    });
    // An end during the handshake would leave the socket half-open.
    const onEnd = (): unknown => tls.destroy();
    tls.once('end', onEnd);
    tls.once('close', () => {
      const code = failureOf(failure, clock.monotonicMs() - shownAtMs);
      this.#fail(code, failure === undefined ? 'was given up by the app' : `failed: ${wordsOf(failure)}`);
    });
    tls.once('secure', () => {
      if (this.#phase.kind === 'over') return;
      tls.off('end', onEnd);
      this.#let();
      this.#options.onSecured(tls);
    });
  }

  #fail(code: CountedErrorCode, what: string): void {
    const phase = this.#phase;
    if (phase.kind === 'over') return;
    this.#let();
    if (phase.kind === 'asking') phase.end();
    // A written alert leaves first.
    if (phase.kind === 'securing') phase.tls.destroy();
    else this.#socket.destroySoon();
    this.#options.onFailed(
      new SidecarError(code, `the TLS handshake of the app with ${this.#options.host} ${what}`),
    );
  }

  #let(): void {
    this.#phase = OVER;
    this.#deadline.dispose();
    this.#socket.off('end', this.#onEnd);
    this.#socket.off('close', this.#onClose);
  }
}

/** Without OpenSSL's source positions. */
function wordsOf(failure: Error & { readonly reason?: unknown }): string {
  return typeof failure.reason === 'string' ? failure.reason : failure.message;
}

type HandshakeFailure = 'client_rejected_certificate' | 'client_tls_error';

/**
 * Node judges a certificate after all messages, wget after the handshake: a client that hangs up this soon, having
 * asked nothing, has rejected it.
 */
export const VERDICT_MS = 1_000;

/** A client that hangs up sends no alert: Node reports one of these, or nothing. */
const HUNG_UP: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/** @param error undefined if the client hung up without one. */
export function failureOf(error: Error | undefined, sinceShownMs: number): HandshakeFailure {
  const isGone = error === undefined || HUNG_UP.has(systemCodeOf(error) ?? '');
  const isRejection = (isGone && sinceShownMs < VERDICT_MS) || rejectionOf(error) !== undefined;
  return isRejection ? 'client_rejected_certificate' : 'client_tls_error';
}

/** RFC 7301 §6. */
const ALPN_NAMES: Readonly<Record<Protocol, string>> = { http1: 'http/1.1', h2: 'h2' };

export function mustAskUpstream(offered: readonly string[] | undefined): boolean {
  return offered?.includes(ALPN_NAMES.h2) === true && offered.includes(ALPN_NAMES.http1);
}

/**
 * The only protocol that OpenSSL may choose; undefined if the app asks for none. The upstream's is taken if offered,
 * else the other (requests are translated). If neither is offered, OpenSSL alerts no_application_protocol (RFC 7301
 * §3.2).
 * @param spoken by the upstream; undefined if unknown.
 */
export function chooseProtocol(
  offered: readonly string[] | undefined,
  spoken: Protocol | undefined,
): string[] | undefined {
  if (offered === undefined || offered.length === 0) return undefined;
  const [first, second] = spoken === 'h2' ? (['h2', 'http1'] as const) : (['http1', 'h2'] as const);
  for (const protocol of [first, second]) {
    const name = ALPN_NAMES[protocol];
    if (offered.includes(name)) return [name];
  }
  return [ALPN_NAMES.http1];
}
