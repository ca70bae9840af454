import type { Socket } from 'node:net';
import type { ForwardProxyConfig, RedirectConfig } from '../../config/config.ts';
import { redirectListeners, WITHOUT_FAMILY } from '../../config/sidecar-listeners.ts';
import { SidecarError, systemCodeOf } from '../../platform/errors.ts';
import type { ListenAddress } from '../../platform/net/address.ts';
import type { AppContext } from '../app/connection.ts';
import type { Listener, Service } from '../app/listener.ts';
import { logFailure } from '../proxy-error.ts';
import type { TlsTermination } from '../tls/termination.ts';
import { PassingConnections } from './passing-connections.ts';
import { RedirectedConnection, type RedirectedResult } from './redirected-connection.ts';

/** The list of hosts whose redirected connections get the token; all others pass. */
export function redirectedList({ hosts, timeouts }: RedirectConfig): ForwardProxyConfig {
  return { allow: hosts, otherHosts: 'pass', connect: 'intercept', timeouts };
}

/** Where a redirected connection was going; undefined if the system does not know. */
export type FindOriginal = (accepted: Socket) => ListenAddress | undefined;

interface RedirectedServiceOptions {
  readonly context: AppContext;
  readonly termination: TlsTermination;
  readonly findOriginal: FindOriginal;
  readonly onResult: (result: RedirectedResult) => void;
}

/** Serves connections that the system redirects here. */
export function redirectedService({ context, findOriginal, ...options }: RedirectedServiceOptions): Service {
  const passing = new PassingConnections();
  return {
    what: 'redirect',
    // Apps that arrive here know of no proxy.
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

/** For a connection that was not redirected the system names a destination, too: this listener. */
function isHere({ host, port }: ListenAddress, { localAddress, localPort }: Socket): boolean {
  return port === localPort && host === localAddress;
}

/**
 * Listens where the system redirects to: loopback, in both address families.
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
