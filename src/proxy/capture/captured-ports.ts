import type { CapturedHost, ForwardProxyConfig, ListenAddress } from '../../config/config.ts';
import { SidecarError } from '../../errors.ts';
import { AcceptedConnection } from '../app/accepted-connection.ts';
import type { AppContext } from '../app/context.ts';
import type { Service } from '../app/listener.ts';
import { asProxyError, logFailure } from '../proxy-error.ts';
import type { ActiveRoute } from '../routing/active-route.ts';
import type { AskedDestination } from '../routing/forward-destination.ts';
import { ListedDestination } from '../routing/listed-destination.ts';
import type { TlsTermination } from '../tls/termination.ts';
import { CapturedTlsConnection } from './captured-tls-connection.ts';

/** The list by which captured hosts get the token: nothing else is reached by it. */
export function capturedList(hosts: readonly CapturedHost[]): ForwardProxyConfig {
  const [{ timeouts }] = hosts as [CapturedHost];
  return {
    allow: hosts.flatMap(({ address: _, ports, clearPorts, ...host }) =>
      [...ports, ...clearPorts].map((port) => ({ ...host, port })),
    ),
    otherHosts: 'deny',
    connect: 'intercept',
    timeouts,
  };
}

/** An address where the sidecar listens in the place of a host, and how what comes there is served. */
export interface CapturedPort {
  readonly listen: ListenAddress;
  readonly service: Service;
}

/** @param termination absent where no TLS ends here. */
export function capturedPorts(
  hosts: readonly CapturedHost[],
  context: AppContext,
  termination: TlsTermination | undefined,
): readonly CapturedPort[] {
  return hosts.flatMap(({ host, address, ports, clearPorts }) => {
    const what = `capture of ${host}`;
    const overTls = ports.map((port): CapturedPort => {
      if (termination === undefined) throw new SidecarError('internal', `${what} without certificates`);
      const open = openTls({ scheme: 'https', host, port }, context, termination);
      return { listen: { host: address, port }, service: { what, clear: false, open } };
    });
    const inClear = clearPorts.map((port): CapturedPort => {
      const open = openClear({ scheme: 'http', host, port }, context);
      return { listen: { host: address, port }, service: { what, clear: true, open } };
    });
    return [...overTls, ...inClear];
  });
}

function openClear(asked: AskedDestination, context: AppContext): Service['open'] {
  const destinations = new ListedDestination(() => context.destinations, 'captured', asked);
  const captured: AppContext = { ...context, destinations };
  return (accepted, onFree) => new AcceptedConnection(accepted, captured, onFree);
}

function openTls(asked: AskedDestination, context: AppContext, termination: TlsTermination): Service['open'] {
  return (accepted, onFree) => {
    let route: ActiveRoute | undefined;
    try {
      route = context.destinations.routeTo('captured', asked);
      termination.assertRoom();
    } catch (error) {
      const cause = asProxyError(error);
      (route?.observer ?? context.noRoute).error(cause.code);
      logFailure(context.log, route?.config.name ?? 'none', cause);
      accepted.destroy();
      return undefined;
    }
    return new CapturedTlsConnection(accepted, { context, termination, asked, route, onFree });
  };
}
