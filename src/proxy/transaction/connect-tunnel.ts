import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import type { Destination } from '../routing/routes.ts';
import type { UpstreamStream, UpstreamUser } from '../streams/contract.ts';
import type { RequestService } from './listener-context.ts';
import type { Transaction } from './transaction.ts';

/** A CONNECT (RFC 9110 §9.3.6): bytes both ways, unread, without a token. */
export class ConnectTunnel implements RequestService, UpstreamUser {
  readonly body = undefined;
  readonly sentBy = undefined;
  readonly heldBytes = 0;
  readonly #transaction: Transaction;
  readonly #destination: Destination;
  #upstream: UpstreamStream | undefined;

  constructor(transaction: Transaction, destination: Destination) {
    this.#transaction = transaction;
    this.#destination = destination;
  }

  begin(): void {
    this.#upstream = this.#destination.route.upstream.acquireTunnel(this);
  }

  onConnected(): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    this.#upstream = undefined;
    this.#transaction.beginTunnel(200);
    const { idleMs } = this.#destination.route.config.timeouts;
    this.#transaction.stream.becomeTunnel(
      undefined,
      upstream.tunnelEnd,
      idleMs,
      this.#transaction.recorder?.bytes,
    );
  }

  release(): void {
    this.#upstream?.cancel();
    this.#upstream = undefined;
  }

  onError(error: SidecarError<ProxyErrorCode>): void {
    this.#upstream = undefined;
    if (this.#transaction.over) return;
    this.#transaction.report(error);
    this.#transaction.fail(error);
  }

  // Nothing is sent or read before the tunnel is open.
  flushRequest(): void {}
  onDownstreamDrain(): void {}
  onDrain(): void {}
  onReadEnd(): void {}
  onStalled(): void {}
  onInterim = unexpected;
  onResponse = unexpected;
  onSwitched = unexpected;
  onData = unexpected;
  onEnd = unexpected;
}

function unexpected(): never {
  throw new SidecarError('internal', 'an answer came on a connection that no request was sent on');
}
