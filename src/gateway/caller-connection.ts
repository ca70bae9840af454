import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { AcceptedConnection } from '../proxy/app/accepted-connection.ts';
import { type AppConnection, type AppContext, guarded } from '../proxy/app/connection.ts';
import type { CallerGate, CallerGates } from './caller-gate.ts';
import type { Holder, Party } from './held-memory.ts';
import { peerOf } from './peer.ts';
import { beginHandshake, type TlsHandshakeOptions } from './tls-handshake.ts';

interface CallerConnectionOptions {
  readonly context: AppContext;
  readonly secureContext: TlsHandshakeOptions['secureContext'];
  readonly asksForCertificate: boolean;
  /** Fingerprints of the authorities in `secureContext`. */
  readonly authorities: ReadonlySet<string>;
  readonly gates: CallerGates;
  /** Called with the outcome of its handshake. */
  readonly onResult: (result: 'secured' | 'handshake_failed' | 'timeout') => void;
  /** Reports that its caller is known, or that it is gone. */
  readonly known: () => void;
  /** Called whenever a request is settled. */
  readonly onFree: () => void;
}

/** A caller's connection: TLS, and inside it what the sidecar's listener serves in clear. */
export class CallerConnection implements AppConnection, Holder {
  readonly socket: Socket;
  place = 0;
  /** Absent until TLS is established. */
  #inside: AcceptedConnection | undefined;
  #gate: CallerGate | undefined;

  constructor(socket: Socket, options: CallerConnectionOptions) {
    const { context, known } = options;
    const { log } = context;
    this.socket = socket;
    // Whatever ends a connection leads to 'close'.
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

  /** A handshake counts as a request, with its own time limit. */
  get busy(): boolean {
    return this.#inside?.busy !== false;
  }

  /** Who answers for what it holds: its caller or, before that is known, its address. */
  get party(): Party {
    const address = this.socket.remoteAddress ?? '';
    const caller = this.#gate?.countedFor;
    return { key: caller?.key ?? address, caller: caller?.name, address };
  }

  get heldBytes(): number {
    return this.#inside?.heldBytes ?? 0;
  }

  end(): void {
    this.socket.destroy();
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
    this.#inside = new AcceptedConnection(tls, { ...context, authorizer: gate }, onFree);
    onFree();
  }
}
