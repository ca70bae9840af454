import type { Socket } from 'node:net';
import type { ForwardProxyConfig, ListenAddress, RedirectConfig } from '../../config/config.ts';
import { redirectListeners, WITHOUT_FAMILY } from '../../config/sidecar-listeners.ts';
import { SidecarError, systemCodeOf } from '../../errors.ts';
import type { AppContext } from '../app/context.ts';
import type { Listener, Service } from '../app/listener.ts';
import { logFailure } from '../proxy-error.ts';
import type { TlsTermination } from '../tls/termination.ts';
import { PassingConnections } from './passing-connections.ts';
import { RedirectedConnection, type RedirectedResult } from './redirected-connection.ts';

/** The list by which hosts of redirected connections get the token; all others pass. */
export function redirectedList({ hosts, timeouts }: RedirectConfig): ForwardProxyConfig {
  return { allow: hosts, otherHosts: 'pass', connect: 'intercept', timeouts };
}

/** Where a redirected connection was going; undefined where the system knows of none. */
export type FindOriginal = (accepted: Socket) => ListenAddress | undefined;

export interface RedirectedServiceOptions {
  readonly context: AppContext;
  readonly termination: TlsTermination;
  readonly findOriginal: FindOriginal;
  readonly onResult: (result: RedirectedResult) => void;
}

/** How connections are served that the system sends here from where they were going. */
export function redirectedService({ context, findOriginal, ...options }: RedirectedServiceOptions): Service {
  const passing = new PassingConnections();
  return {
    what: 'redirect',
    // Whoever comes here knows of no proxy.
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

/** The system knows of a connection that was not redirected as well: it was going here. */
function isHere({ host, port }: ListenAddress, { localAddress, localPort }: Socket): boolean {
  return port === localPort && host === localAddress;
}

/**
 * Listens to where the system redirects: its loopback, of either family.
 * @throws {SidecarError} `configuration` where the port cannot be had.
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
