import type { AddressInfo, Server } from 'node:net';
import { SidecarError, systemCodeOf } from '../errors.ts';
import { EVERY_ADDRESS, formatAddress, type ListenAddress } from './address.ts';

/**
 * Resolves to the address once `server` accepts connections there, with the port that the system picked for 0.
 * @param what names the listener in the error.
 * @throws {SidecarError} `configuration` if the address cannot be had.
 */
export async function listenOn(server: Server, listen: ListenAddress, what: string): Promise<ListenAddress> {
  await new Promise<void>((resolve, reject) => {
    const onError = (error: Error): void => {
      const why = systemCodeOf(error) ?? error.message;
      const message = `${what}: cannot listen on ${formatAddress(listen)}: ${why}`;
      reject(new SidecarError('configuration', message, { cause: error }));
    };
    server.once('error', onError);
    // Naming `::` would be an error on a machine without IPv6; without a host, Node uses it where it exists.
    const host = listen.host === EVERY_ADDRESS ? {} : { host: listen.host };
    server.listen({ ...host, port: listen.port }, () => {
      server.off('error', onError);
      resolve();
    });
  });
  return { host: listen.host, port: (server.address() as AddressInfo).port };
}
