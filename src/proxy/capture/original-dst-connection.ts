import type { Socket } from 'node:net';
import { type ProxyErrorCode, SidecarError } from '../../platform/errors.ts';
import { formatAddress, type ListenAddress } from '../../platform/net/address.ts';
import type { TakeBytes } from '../io/sockets.ts';
import type { ActiveRoute } from '../routing/routes.ts';
import { type UpstreamStream, WithoutRequest } from '../streams/contract.ts';
import type { TunnelEnd } from '../tunnel/tunnel.ts';

interface OriginalConnectionEvents {
  stands(): void;
  spoke(): void;
  failed(error: SidecarError<ProxyErrorCode> | undefined): void;
}

type State =
  | { readonly kind: 'connecting' }
  /** Holds what the server has said. */
  | { readonly kind: 'waiting'; readonly end: TunnelEnd; readonly said: Buffer | undefined }
  | { readonly kind: 'over' };

interface Way {
  readonly original: ListenAddress;
  readonly passing: PassthroughConnections;
}

export class OriginalDstConnection extends WithoutRequest {
  readonly #events: OriginalConnectionEvents;
  readonly #way: Way;
  readonly #stream: UpstreamStream;
  #state: State = { kind: 'connecting' };
  #take: TakeBytes = (chunk) => this.#hold(chunk);

  constructor({ upstream }: ActiveRoute, way: Way, events: OriginalConnectionEvents) {
    super();
    this.#events = events;
    this.#way = way;
    this.#stream = upstream.acquireTunnel(this);
  }

  /** For a tunnel; undefined unless open. */
  giveUp(): TunnelEnd | undefined {
    const state = this.#state;
    if (state.kind !== 'waiting') return undefined;
    const { socket, writer } = state.end;
    let { said } = state;
    socket.off('end', this.#onSpoke);
    socket.off('close', this.#onClose);
    this.#state = { kind: 'over' };
    return {
      socket,
      writer,
      takeOver: (take) => {
        this.#take = take;
        const first = said;
        // Released, since the tunnel keeps this end.
        said = undefined;
        return first;
      },
    };
  }

  abandon(): void {
    const state = this.#state;
    this.#state = { kind: 'over' };
    if (state.kind === 'connecting') this.#stream.cancel();
    else if (state.kind === 'waiting') state.end.socket.destroy();
  }

  override onConnected(): void {
    const end = this.#stream.tunnelEnd;
    this.#state = { kind: 'waiting', end, said: undefined };
    const { passing, original } = this.#way;
    passing.add(end.socket, original);
    end.socket.on('end', this.#onSpoke);
    end.socket.on('close', this.#onClose);
    end.takeOver((chunk) => this.#take(chunk));
    this.#events.stands();
  }

  override onError(error: SidecarError<ProxyErrorCode>): void {
    if (this.#state.kind === 'over') return;
    this.#state = { kind: 'over' };
    this.#events.failed(error);
  }

  #hold(chunk: Buffer): void {
    const state = this.#state;
    if (state.kind !== 'waiting') return;
    const said = Buffer.concat([...(state.said === undefined ? [] : [state.said]), chunk]);
    this.#state = { ...state, said };
    // One read is enough to know.
    state.end.socket.pause();
    this.#events.spoke();
  }

  readonly #onSpoke = (): void => this.#events.spoke();

  readonly #onClose = (): void => {
    if (this.#state.kind === 'over') return;
    this.#state = { kind: 'over' };
    this.#events.failed(undefined);
  };
}

/**
 * A passing connection that is itself redirected would be passed on forever, if the system exempts another user than
 * this program's.
 */
export class PassthroughConnections {
  readonly #known = new Set<string>();

  add(socket: Socket, original: ListenAddress): void {
    const known = between(socket.localAddress, socket.localPort, original);
    this.#known.add(known);
    socket.once('close', () => this.#known.delete(known));
  }

  /** @throws {SidecarError} `loop_detected` if the accepted connection to `original` is one of these. */
  assertOthers({ remoteAddress, remotePort }: Socket, original: ListenAddress): void {
    if (!this.#known.has(between(remoteAddress, remotePort, original))) return;
    const user = process.getuid?.();
    throw new SidecarError(
      'loop_detected',
      `a connection of the sidecar itself was redirected to it: \`token-sidecar redirect\` has to exempt its user, by --exempt-user ${user}`,
    );
  }
}

/** By both ends: the system gives one local port to several connections if they lead to different addresses. */
function between(address: string | undefined, port: number | undefined, original: ListenAddress): string {
  return `${address} ${port} ${formatAddress(original)}`;
}
