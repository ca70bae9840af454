import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { AcceptedConnection } from '../proxy/app/accepted-connection.ts';
import type { AppConnection } from '../proxy/app/app-connection.ts';
import type { AppContext } from '../proxy/app/context.ts';
import { guarded } from '../proxy/app/guarded.ts';
import type { CallerGate, CallerGates } from './caller-gate.ts';
import { peerOf } from './peer.ts';
import { beginHandshake, type TlsHandshakeOptions } from './tls-handshake.ts';

export interface CallerConnectionOptions {
  readonly context: AppContext;
  readonly secureContext: TlsHandshakeOptions['secureContext'];
  readonly asksForCertificate: boolean;
  /** Fingerprints of those in `secureContext`. */
  readonly authorities: ReadonlySet<string>;
  readonly gates: CallerGates;
  /** Its handshake has ended, as this. */
  readonly onResult: (result: 'secured' | 'handshake_failed' | 'timeout') => void;
  /** Says that it is known whose it is, or that it is gone. */
  readonly known: () => void;
  /** Called whenever a request is settled. */
  readonly onFree: () => void;
}

/** A connection of a caller: TLS, and inside of it what the listener of the sidecar serves in clear. */
export class CallerConnection implements AppConnection {
  readonly socket: Socket;
  place = 0;
  /** Absent until there is TLS. */
  #inside: AcceptedConnection | undefined;
  #gate: CallerGate | undefined;

  constructor(socket: Socket, options: CallerConnectionOptions) {
    const { context, known } = options;
    const { log } = context;
    this.socket = socket;
    // Whatever ends a connection ends in 'close'.
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

  /** A handshake is served as a request is, and has a bound of its own. */
  get busy(): boolean {
    return this.#inside?.busy !== false;
  }

  closeIdle(): void {
    if (this.#inside === undefined) this.socket.destroySoon();
    else this.#inside.closeIdle();
  }

  drain(): void {
    this.#inside?.drain();
  }

  #speak(tls: TLSSocket, { context, authorities, gates, known, onFree }: CallerConnectionOptions): void {
    const gate = gates.open({
      peer: peerOf(tls, authorities, context.clock.now()),
      address: this.socket.remoteAddress,
      known,
      retire: () => this.#inside?.drain(),
    });
    this.#gate = gate;
    this.#inside = new AcceptedConnection(tls, { ...context, gatekeeper: gate }, onFree);
    onFree();
  }
}
