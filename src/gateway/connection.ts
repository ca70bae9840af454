import type { Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import type { Clock } from '../platform/time/clock.ts';
import { AcceptedConnection } from '../proxy/downstream/accepted-connection.ts';
import {
  type DownstreamConnection,
  type DownstreamContext,
  guarded,
} from '../proxy/downstream/connection.ts';
import { Deadline } from '../proxy/io/deadline.ts';
import { CallerAuthorizer, type CallerGateOptions } from './authorizer.ts';
import { peerOf } from './client-certificate.ts';
import type { Holder, Party } from './held-memory.ts';

interface CallerConnectionOptions {
  readonly context: DownstreamContext;
  readonly secureContext: TlsHandshakeOptions['secureContext'];
  readonly asksForCertificate: boolean;
  /** Of the authorities in `secureContext`. */
  readonly authorities: ReadonlySet<string>;
  readonly gates: CallerGateOptions;
  /** The outcome of the handshake. */
  readonly onResult: (result: 'secured' | 'handshake_failed' | 'timeout') => void;
  readonly known: () => void;
  /** Called whenever a request is settled. */
  readonly onFree: () => void;
}

export class CallerConnection implements DownstreamConnection, Holder {
  readonly socket: Socket;
  place = 0;
  /** Absent until TLS is established. */
  #inside: AcceptedConnection | undefined;
  #gate: CallerAuthorizer | undefined;
  #tls: TLSSocket | undefined;

  constructor(socket: Socket, options: CallerConnectionOptions) {
    const { context, known } = options;
    const { log } = context;
    this.socket = socket;
    // Every end leads to 'close'.
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      known();
      this.#gate?.closed();
    });
    guarded(socket, log, () => this.#begin(options));
  }

  #begin(options: CallerConnectionOptions): void {
    const { context, secureContext, asksForCertificate, onResult, onFree } = options;
    const { clock, log } = context;
    beginHandshake({
      socket: this.socket,
      secureContext,
      asksForCertificate,
      clock,
      onSecured: (tls) => {
        onResult('secured');
        guarded(this.socket, log, () => this.#speak(tls, options));
      },
      onFailed: (result, why) => {
        onResult(result);
        log.debug({ result, why }, 'the TLS handshake of a caller did not come to its end');
        onFree();
      },
    });
  }

  /** A handshake counts as a request; it has its own time limit. */
  get busy(): boolean {
    return this.#inside?.busy !== false;
  }

  /** The caller or, before it is known, the address. */
  get party(): Party {
    const address = this.socket.remoteAddress ?? '';
    const caller = this.#gate?.countedFor;
    return { key: caller?.key ?? address, caller: caller?.name, address };
  }

  get heldBytes(): number {
    return this.#inside?.heldBytes ?? 0;
  }

  get sockets(): readonly Socket[] {
    const sockets = [this.socket];
    this.#inside?.addUpstreamSockets(sockets);
    return sockets;
  }

  /** Its end, or that of TLS, follows what was written. */
  get hasEnded(): boolean {
    return [this.socket, this.#tls].some((one) => one?.writableEnded === true && one.writableLength === 0);
  }

  end(): void {
    // Else the kernel would go on sending.
    this.socket.resetAndDestroy();
  }

  closeIdle(): void {
    if (this.#inside === undefined) this.socket.destroySoon();
    else this.#inside.closeIdle();
  }

  drain(): void {
    this.#inside?.drain();
  }

  #speak(tls: TLSSocket, { context, authorities, gates, known, onFree }: CallerConnectionOptions): void {
    const gate = new CallerAuthorizer(gates, {
      peer: peerOf(tls, authorities, context.clock.now()),
      address: this.socket.remoteAddress,
      known,
      retire: () => this.#inside?.drain(),
    });
    this.#gate = gate;
    this.#tls = tls;
    this.#inside = new AcceptedConnection(tls, { ...context, authorizer: gate }, onFree);
    onFree();
  }
}

const HANDSHAKE_MS = 10_000;

/** A client that offers neither gets an alert (RFC 7301 §3.2). */
const PROTOCOLS = ['h2', 'http/1.1'];

interface TlsHandshakeOptions {
  /** Just accepted. */
  readonly socket: Socket;
  readonly secureContext: SecureContext;
  /** The caller may decline. */
  readonly asksForCertificate: boolean;
  readonly clock: Clock;
  /** Called in the turn in which the handshake ended. */
  readonly onSecured: (socket: TLSSocket) => void;
  readonly onFailed: (result: 'handshake_failed' | 'timeout', why: string) => void;
}

export function beginHandshake({
  socket,
  secureContext,
  asksForCertificate,
  clock,
  onSecured,
  onFailed,
}: TlsHandshakeOptions): void {
  const tls = new TLSSocket(socket, {
    isServer: true,
    secureContext,
    ALPNProtocols: PROTOCOLS,
    requestCert: asksForCertificate,
    // An untrusted caller gets an answer that says so.
    rejectUnauthorized: false,
  });
  let over = false;
  let failure: Error | undefined;
  const deadline = new Deadline(clock, () => fail('timeout', `was not over in ${HANDSHAKE_MS} ms`));
  deadline.set(clock.monotonicMs() + HANDSHAKE_MS);

  function fail(result: 'handshake_failed' | 'timeout', why: string): void {
    if (over) return;
    over = true;
    deadline.dispose();
    tls.destroy();
    socket.destroy();
    onFailed(result, why);
  }

  tls.on('error', (error) => {
    failure ??= error;
    tls.destroy();
  });
  // Node reports TLS errors after the handshake only here, and leaves the socket open.
  tls.on('_tlsError', (error: Error) => {
    failure ??= error;
    tls.destroy();
  });
  // An end during the handshake would leave it half-open.
  const onEnd = (): unknown => tls.destroy();
  tls.once('end', onEnd);
  const onClose = (): void =>
    fail(
      'handshake_failed',
      failure === undefined ? 'was given up by the caller' : `failed: ${failure.message}`,
    );
  tls.once('close', onClose);
  // It was displaced, or the program ended.
  socket.once('close', onClose);
  tls.once('secure', () => {
    if (over) return;
    over = true;
    deadline.dispose();
    tls.off('end', onEnd);
    onSecured(tls);
  });
}
