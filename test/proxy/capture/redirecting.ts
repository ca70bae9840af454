/** The sidecar with its listener of redirected connections, and apps that come there; where they were going is what the test says. */

import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer, type Server } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { AllowedDestination, RouteTimeouts } from '../../../src/config/config.ts';
import type { CountedErrorCode } from '../../../src/platform/errors.ts';
import type { ListenAddress } from '../../../src/platform/net/address.ts';
import { systemClock } from '../../../src/platform/time/clock.ts';
import type { Network } from '../../../src/proxy/io/network.ts';
import { createAuthority, LeafCertificates } from '../../../src/proxy/tls/interception-ca.ts';
import { until } from '../../support/until.ts';
import { RawClient } from '../../wire/raw-client.ts';
import { forwardTo, type SidecarSettings, startSidecar, TIMEOUTS } from '../../wire/sidecar.ts';
import { HOST, LOOPBACK } from '../tls/intercepting.ts';

/** What a test says of where connections lead. */
interface Dependencies extends SidecarSettings {
  /** Where every redirected connection was going; undefined where the system knows of none. */
  readonly original: ListenAddress | undefined;
  /** Of the listed host; without a file nobody vouches for it. */
  readonly caFile?: string;
  readonly entry?: Partial<AllowedDestination>;
  /** Of what passes. */
  readonly passing?: RouteTimeouts;
}

export async function redirecting({
  original,
  caFile,
  entry = {},
  passing = TIMEOUTS,
  ...settings
}: Dependencies) {
  const servers: Server[] = [];
  let made = 0;
  let accepted = 0;
  const network: Network = {
    ...LOOPBACK,
    ...settings.network,
    createServer(options, onAccepted) {
      const server = LOOPBACK.createServer(options, onAccepted);
      server.on('connection', () => {
        accepted += 1;
      });
      servers.push(server);
      return server;
    },
  };
  if (original !== undefined) await keepFromIpv6(original.port);
  const authority = createAuthority({ names: [HOST], nowMs: Date.now() });
  const address = { host: HOST, port: original?.port ?? 443 };
  const { allow } = forwardTo({ address, protocol: 'https', caFile }, entry);
  const sidecar = await startSidecar({
    leaves: new LeafCertificates(authority, systemClock),
    ...settings,
    network,
    redirect: { port: 0, hosts: allow, timeouts: passing },
    findOriginal: () => original,
  });
  // The proxy's own listener is the first.
  const [, ...listening] = servers.map((server) => server.address() as AddressInfo);
  const [ipv4, ipv6] = listening;
  if (ipv4 === undefined) throw new Error('nobody listens for redirected connections');
  /**
   * Ends once the sidecar has the connection, too, so that its times run by the test's clock. The app binds its end:
   * otherwise the system may give the same port to a connection of the sidecar's to `original`, which is made up, and
   * the two would look like a loop.
   */
  const connected = async (to: Pick<AddressInfo, 'address' | 'port'> = ipv4): Promise<RawClient> => {
    const { address: host, port } = to;
    const socket = connectTcp({ host, port, localAddress: host, allowHalfOpen: true });
    onTestFinished(() => {
      socket.destroy();
    });
    made += 1;
    const count = made;
    await once(socket, 'connect');
    await until(() => accepted >= count);
    return new RawClient(socket);
  };
  return {
    sidecar,
    /** Has it serve another list; connections come where they came. */
    relist: (host: string) =>
      sidecar.reconfigure({
        redirect: { port: 0, hosts: allow.map((one) => ({ ...one, host })), timeouts: passing },
      }),
    ipv4,
    ipv6,
    connected,
    async secured(options: ConnectionOptions = {}): Promise<RawClient> {
      made += 1;
      const { port } = ipv4;
      const socket = connectTls({
        host: '127.0.0.1',
        port,
        ca: authority.root,
        servername: HOST,
        ...options,
      });
      onTestFinished(() => {
        socket.destroy();
      });
      await once(socket, 'secureConnect');
      return new RawClient(socket);
    },
    counted: (error: CountedErrorCode, times = 1) =>
      until(async () => (await sidecar.metric('proxy_errors_total', { error })) === times),
    /** How many connections came to be served in this way. */
    served: (result: string) => sidecar.metric('proxy_redirected_connections_total', { result }),
  };
}

/**
 * Keeps the sidecar from listening at this port of ::1, where a test has it listen at any. It takes connections to that
 * port of 127.0.0.1 for some to itself as well, and ends them. Outside of tests it has one port for both families.
 */
async function keepFromIpv6(port: number): Promise<void> {
  const keeper = createServer();
  onTestFinished(() => {
    keeper.close();
  });
  await new Promise<void>((resolve) => {
    // Others have it already, or nobody can.
    keeper.once('error', () => resolve());
    keeper.listen(port, '::1', () => resolve());
  });
}
