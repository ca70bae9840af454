/** The sidecar listens in place of captured hosts, on their ports. */

import type { Socket } from 'node:net';
import type { CapturedHost, ForwardProxyConfig } from '../../config/config.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { ListenAddress } from '../../platform/net/address.ts';
import { AcceptedConnection } from '../downstream/accepted-connection.ts';
import { type DownstreamConnection, type DownstreamContext, guarded } from '../downstream/connection.ts';
import type { Service } from '../downstream/listener.ts';
import { acceptShared, type TakeBytes } from '../io/sockets.ts';
import { asProxyError, logFailure } from '../proxy-error.ts';
import type { ListedHost } from '../routing/destinations.ts';
import type { RequestedHost } from '../routing/forward-proxy.ts';
import type { ActiveRoute } from '../routing/routes.ts';
import type { ConnectionSuccessor } from '../streams/contract.ts';
import type { TerminatedConnection, TlsTermination } from '../tls/termination.ts';

export function capturedList(hosts: readonly CapturedHost[]): ForwardProxyConfig {
  const [{ timeouts }] = hosts as [CapturedHost];
  return {
    allow: hosts.flatMap(({ address: _, ports, clearPorts, ...host }) => [
      // What comes over TLS leaves over TLS.
      ...ports.map((port) => ({ ...host, port, upgradeToTls: true })),
      ...clearPorts.map((port) => ({ ...host, port })),
    ]),
    otherHosts: 'deny',
    connect: 'intercept',
    timeouts,
  };
}

interface CapturedPort {
  readonly listen: ListenAddress;
  readonly service: Service;
}

export function capturedPorts(
  hosts: readonly CapturedHost[],
  context: DownstreamContext,
  termination: TlsTermination | undefined,
): readonly CapturedPort[] {
  return hosts.flatMap(({ host, address, ports, clearPorts }) => {
    const what = `capture of ${host}`;
    const overTls = ports.map((port): CapturedPort => {
      if (termination === undefined) throw new SidecarError('internal', `${what} without certificates`);
      const open = openTls(captured('https', host, port), context, termination);
      return { listen: { host: address, port }, service: { what, clear: false, open } };
    });
    const inClear = clearPorts.map((port): CapturedPort => {
      const open = openClear(captured('http', host, port), context);
      return { listen: { host: address, port }, service: { what, clear: true, open } };
    });
    return [...overTls, ...inClear];
  });
}

function captured(scheme: RequestedHost['scheme'], host: string, port: number): ListedHost {
  return { list: 'captured', asked: { scheme, host, port } };
}

function openClear(listed: ListedHost, context: DownstreamContext): Service['open'] {
  const own: DownstreamContext = { ...context, listed };
  return (accepted, onFree) => new AcceptedConnection(accepted, own, onFree);
}

function openTls(
  listed: ListedHost,
  context: DownstreamContext,
  termination: TlsTermination,
): Service['open'] {
  return (accepted, onFree) => {
    let route: ActiveRoute | undefined;
    try {
      route = context.snapshot().destinations.routeTo(listed);
      termination.assertRoom();
    } catch (error) {
      const cause = asProxyError(error);
      (route?.observer ?? context.noRoute).error(cause.code);
      logFailure(context.log, route?.config.name ?? 'none', cause);
      accepted.destroy();
      return undefined;
    }
    return new CapturedTlsConnection(accepted, { context, termination, listed, route, onFree });
  };
}

interface CapturedTlsConnectionOptions {
  readonly context: DownstreamContext;
  readonly termination: TlsTermination;
  readonly listed: ListedHost;
  readonly route: ActiveRoute;
  /** Called whenever a request is settled. */
  readonly onFree: () => void;
}

class CapturedTlsConnection implements DownstreamConnection {
  readonly socket: Socket;
  place = 0;
  /** Absent until there is TLS. */
  #successor: ConnectionSuccessor | undefined;

  constructor(socket: Socket, options: CapturedTlsConnectionOptions) {
    const { context, termination, listed, route, onFree } = options;
    let take: TakeBytes = () => {};
    acceptShared(socket, (chunk) => guarded(socket, context.log, () => take(chunk)));
    this.socket = socket;
    // Every end emits 'close'.
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

  /** A handshake counts as busy; it has its own time limit. */
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
