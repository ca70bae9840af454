/** Redirected connections: those to listed hosts get the token, all others pass. */

import type { Socket } from 'node:net';
import type { ForwardProxyConfig, RedirectConfig } from '../../config/config.ts';
import { redirectListeners, WITHOUT_FAMILY } from '../../config/sidecar-listeners.ts';
import { DEFAULT_PORTS } from '../../config/values.ts';
import { type ProxyErrorCode, SidecarError, systemCodeOf } from '../../platform/errors.ts';
import { type ListenAddress, withoutRootDot } from '../../platform/net/address.ts';
import { AcceptedConnection } from '../downstream/accepted-connection.ts';
import { type DownstreamConnection, type DownstreamContext, guarded } from '../downstream/connection.ts';
import type { Listener, Service } from '../downstream/listener.ts';
import { CoalescingWriter } from '../io/coalescing-writer.ts';
import { Deadline } from '../io/deadline.ts';
import { acceptShared, type TakeBytes } from '../io/sockets.ts';
import { asProxyError, logFailure } from '../proxy-error.ts';
import type { ListedHost } from '../routing/destinations.ts';
import type { RequestedHost } from '../routing/forward-proxy.ts';
import { type ActiveRoute, hostName } from '../routing/routes.ts';
import type { ConnectionSuccessor } from '../streams/contract.ts';
import type { TerminatedConnection, TlsTermination } from '../tls/termination.ts';
import { runTunnel, SocketSide } from '../tunnel/tunnel.ts';
import { sniffHost } from './host-sniffing.ts';
import { OriginalDstConnection, PassthroughConnections } from './original-dst-connection.ts';

export function redirectedList({ hosts, timeouts }: RedirectConfig): ForwardProxyConfig {
  return { allow: hosts, otherHosts: 'pass', connect: 'intercept', timeouts };
}

/** Undefined if the system does not know. */
export type FindOriginalDst = (accepted: Socket) => ListenAddress | undefined;

interface RedirectedServiceOptions {
  readonly context: DownstreamContext;
  readonly termination: TlsTermination;
  readonly findOriginal: FindOriginalDst;
  readonly onResult: (result: RedirectedResult) => void;
}

export function redirectedService({ context, findOriginal, ...options }: RedirectedServiceOptions): Service {
  const passing = new PassthroughConnections();
  return {
    what: 'redirect',
    // Apps here know of no proxy.
    clear: false,
    open(accepted, onFree) {
      const original = findOriginal(accepted);
      if (original === undefined || isHere(original, accepted)) {
        const why = 'a connection came to the listener of redirected ones that was not redirected';
        const error = new SidecarError('destination_not_allowed', why);
        context.noRoute.error(error.code);
        logFailure(context.log, 'none', error);
        options.onResult('refused');
        accepted.destroy();
        return undefined;
      }
      return new RedirectedConnection(accepted, { context, original, onFree, passing, ...options });
    },
  };
}

/** Without a redirect, the system names this listener as the destination. */
function isHere({ host, port }: ListenAddress, { localAddress, localPort }: Socket): boolean {
  return port === localPort && host === localAddress;
}

/**
 * Listens on loopback, in both address families.
 * @throws {SidecarError} `configuration` when the port is not available.
 */
export async function listenForRedirected(
  listener: Listener,
  port: number,
  service: Service,
): Promise<readonly ListenAddress[]> {
  const [first, second] = redirectListeners(port);
  const ipv4 = await listener.listen(first, service);
  try {
    return [ipv4, await listener.listen(second, service)];
  } catch (error) {
    if (!WITHOUT_FAMILY.has(systemCodeOf((error as Error).cause))) throw error;
    return [ipv4];
  }
}

/** A silent app may be waiting for its server to speak: the server is dialled. */
const SERVER_FIRST_TIMEOUT_MS = 1_000;

/** After its first octet; then the connection passes as it is. */
const SNIFF_TIMEOUT_MS = 10_000;

/** Reported once; `left` if it closed first. */
type RedirectedResult = 'listed' | 'passed' | 'refused' | 'left';

interface RedirectedConnectionOptions {
  readonly context: DownstreamContext;
  readonly termination: TlsTermination;
  readonly original: ListenAddress;
  /** Of this listener. */
  readonly passing: PassthroughConnections;
  readonly onResult: (result: RedirectedResult) => void;
  /** Called whenever a request is settled. */
  readonly onFree: () => void;
}

type Phase =
  | { readonly kind: 'unnamed'; readonly firstAtMs: number | undefined }
  | { readonly kind: 'listed'; readonly successor: ConnectionSuccessor | undefined }
  | { readonly kind: 'passing' }
  | { readonly kind: 'over' };

/** Under the configuration of its beginning. */
interface Past {
  readonly route: ActiveRoute;
  readonly connection: OriginalDstConnection;
}

const NOTHING: Buffer = Buffer.alloc(0);

class RedirectedConnection implements DownstreamConnection {
  readonly socket: Socket;
  place = 0;
  readonly #options: RedirectedConnectionOptions;
  readonly #deadline: Deadline;
  #phase: Phase = { kind: 'unnamed', firstAtMs: undefined };
  /** Untaken bytes only, since connections live for hours. */
  #octets: Buffer = NOTHING;
  #take: TakeBytes = (chunk) => this.#read(chunk);
  #past: Past | undefined;

  constructor(socket: Socket, options: RedirectedConnectionOptions) {
    const { clock, log } = options.context;
    acceptShared(socket, (chunk) => guarded(socket, log, () => this.#take(chunk)));
    this.socket = socket;
    this.#options = options;
    this.#deadline = new Deadline(clock, () => guarded(socket, log, () => this.#tooLate()));
    this.#deadline.set(clock.monotonicMs() + SERVER_FIRST_TIMEOUT_MS);
    // Every end emits 'close'.
    socket.on('error', () => socket.destroy());
    socket.on('end', this.#onEnd);
    socket.on('close', () => {
      this.#deadline.dispose();
      const past = this.#past;
      this.#past = undefined;
      if (this.#phase.kind === 'unnamed' || past !== undefined) {
        this.#phase = { kind: 'over' };
        options.onResult('left');
      }
      past?.connection.abandon();
    });
  }

  /** A passing connection in use looks like an idle one. */
  get busy(): boolean {
    const phase = this.#phase;
    return phase.kind === 'listed' ? phase.successor?.busy !== false : phase.kind === 'passing';
  }

  closeIdle(): void {
    const phase = this.#phase;
    if (phase.kind === 'listed' && phase.successor !== undefined) phase.successor.closeIdle();
    else this.socket.destroySoon();
  }

  drain(): void {
    if (this.#phase.kind === 'listed') this.#phase.successor?.drain();
  }

  #read(chunk: Buffer): void {
    const phase = this.#phase;
    if (phase.kind !== 'unnamed') return;
    const octets = Buffer.concat([this.#octets, chunk]);
    this.#octets = octets;
    const naming = sniffHost(octets);
    const firstAtMs = phase.firstAtMs ?? this.#options.context.clock.monotonicMs();
    this.#phase = { kind: 'unnamed', firstAtMs };
    if (naming.kind === 'partial') {
      this.#deadline.set(firstAtMs + SNIFF_TIMEOUT_MS);
      return;
    }
    const asked = naming.kind === 'named' ? this.#listed(naming.scheme, naming.authority) : undefined;
    if (asked === undefined) this.#pass();
    else this.#serve({ list: 'redirected', asked });
  }

  /** Undefined unless listed. Port 80 is for plain HTTP, 443 for TLS. */
  #listed(scheme: RequestedHost['scheme'], authority: string): RequestedHost | undefined {
    const { original, context } = this.#options;
    const other = scheme === 'https' ? 'http' : 'https';
    if (original.port === DEFAULT_PORTS[other]) return undefined;
    const asked = { scheme, host: withoutRootDot(hostName(authority)), port: original.port };
    return context.snapshot().destinations.listsRedirected(asked) ? asked : undefined;
  }

  #serve(listed: ListedHost): void {
    const { context, termination, onResult, onFree } = this.#options;
    const isOverTls = listed.asked.scheme === 'https';
    this.#deadline.dispose();
    this.socket.off('end', this.#onEnd);
    this.#past?.connection.abandon();
    this.#past = undefined;
    let route: ActiveRoute | undefined;
    try {
      route = context.snapshot().destinations.routeTo(listed);
      if (isOverTls) termination.assertRoom();
    } catch (error) {
      this.#refuse(asProxyError(error), route);
      return;
    }
    onResult('listed');
    this.#phase = { kind: 'listed', successor: undefined };
    const connection: TerminatedConnection['connection'] = {
      socket: this.socket,
      takeOver: (take) => this.#handTo(take),
      handOff: (successor) => {
        this.#phase = { kind: 'listed', successor };
      },
      onFree,
    };
    if (isOverTls) {
      termination.begin({ connection, listed, route, onOver: onFree });
      return;
    }
    connection.handOff(new AcceptedConnection(this.socket, { ...context, listed }, onFree, connection));
  }

  #pass(): void {
    if (this.#phase.kind !== 'unnamed') return;
    this.#phase = { kind: 'passing' };
    this.#deadline.dispose();
    this.socket.off('end', this.#onEnd);
    this.socket.pause();
    this.#dial();
    this.#join();
  }

  /** @returns undefined if no connection could be begun. */
  #dial(): Past | undefined {
    if (this.#past !== undefined) return this.#past;
    const { context, original, passing } = this.#options;
    let route: ActiveRoute | undefined;
    try {
      passing.assertOthers(this.socket, original);
      route = context.snapshot().destinations.passthroughRoute(original);
      const connection = new OriginalDstConnection(route, this.#options, {
        stands: () => this.#guarded(() => this.#join()),
        spoke: () => this.#guarded(() => this.#pass()),
        failed: (error) => this.#guarded(() => this.#refuse(error, route)),
      });
      this.#past = { route, connection };
      return this.#past;
    } catch (error) {
      this.#refuse(asProxyError(error), route);
      return undefined;
    }
  }

  #join(): void {
    const past = this.#past;
    const upstream = this.#phase.kind === 'passing' ? past?.connection.giveUp() : undefined;
    if (past === undefined || upstream === undefined) return;
    this.#past = undefined;
    this.#options.onResult('passed');
    const app = {
      socket: this.socket,
      writer: new CoalescingWriter(this.socket),
      takeOver: (take: TakeBytes) => this.#handTo(take),
    };
    const { clock } = this.#options.context;
    const { idleMs } = past.route.config.timeouts;
    runTunnel(new SocketSide(app), new SocketSide(upstream), { clock, idleMs });
  }

  /** @returns the bytes already read. */
  #handTo(take: TakeBytes): Buffer | undefined {
    const octets = this.#octets;
    this.#octets = NOTHING;
    this.#take = take;
    return octets.length === 0 ? undefined : octets;
  }

  /** Resets the connection, as if nobody listened. */
  #refuse(error: SidecarError<ProxyErrorCode> | undefined, route: ActiveRoute | undefined): void {
    const { context, onResult } = this.#options;
    this.#phase = { kind: 'over' };
    this.#past = undefined;
    onResult('refused');
    if (error !== undefined) {
      (route?.observer ?? context.noRoute).error(error.code);
      logFailure(context.log, route?.config.name ?? 'none', error);
    }
    this.socket.resetAndDestroy();
  }

  readonly #onEnd = (): void => this.#guarded(() => this.#pass());

  #guarded(tell: () => void): void {
    guarded(this.socket, this.#options.context.log, tell);
  }

  #tooLate(): void {
    if (this.#phase.kind !== 'unnamed') return;
    if (this.#octets.length > 0) {
      this.#pass();
    } else if (this.#past === undefined) {
      const past = this.#dial();
      // Both sides are silent: a tunnel's idle timeout applies.
      if (past !== undefined) {
        this.#deadline.set(this.#options.context.clock.monotonicMs() + past.route.config.timeouts.idleMs);
      }
    } else this.socket.destroy();
  }
}
