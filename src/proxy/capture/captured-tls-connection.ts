import type { Socket } from 'node:net';
import { type AppConnection, type AppContext, guarded } from '../app/connection.ts';
import { acceptShared, type TakeBytes } from '../io/sockets.ts';
import type { ListedHost } from '../routing/destinations.ts';
import type { ActiveRoute } from '../routing/routes.ts';
import type { ConnectionSuccessor } from '../streams/contract.ts';
import type { TerminatedConnection, TlsTermination } from '../tls/termination.ts';

interface CapturedTlsConnectionOptions {
  readonly context: AppContext;
  readonly termination: TlsTermination;
  readonly listed: ListedHost;
  readonly route: ActiveRoute;
  /** Called whenever a request is settled. */
  readonly onFree: () => void;
}

/** A connection that an app opened to a captured host over TLS, which ends here. */
export class CapturedTlsConnection implements AppConnection {
  readonly socket: Socket;
  place = 0;
  /** Absent until there is TLS. */
  #successor: ConnectionSuccessor | undefined;

  constructor(socket: Socket, options: CapturedTlsConnectionOptions) {
    const { context, termination, listed, route, onFree } = options;
    let take: TakeBytes = () => {};
    acceptShared(socket, (chunk) => guarded(socket, context.log, () => take(chunk)));
    this.socket = socket;
    // Every end of a connection emits 'close'.
    socket.on('error', () => socket.destroy());
    const connection: TerminatedConnection['connection'] = {
      socket,
      takeOver(taker) {
        take = taker;
        return undefined;
      },
      handOff: (successor) => {
        this.#successor = successor;
      },
      onFree,
    };
    termination.begin({ connection, listed, route, onOver: onFree });
  }

  /** A handshake counts as busy, like a request, and has a time limit of its own. */
  get busy(): boolean {
    return this.#successor?.busy !== false;
  }

  closeIdle(): void {
    if (this.#successor === undefined) this.socket.destroySoon();
    else this.#successor.closeIdle();
  }

  drain(): void {
    this.#successor?.drain();
  }
}
