/** An upstream over TLS, the sidecar that intercepts for it, and apps that come by CONNECT. */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type ConnectionOptions, connect, TLSSocket } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { AllowedDestination, ForwardProxyConfig } from '../../../src/config/config.ts';
import { type Clock, systemClock } from '../../../src/platform/time/clock.ts';
import { type Network, systemNetwork } from '../../../src/proxy/io/network.ts';
import { createAuthority, LeafCertificates } from '../../../src/proxy/tls/interception-ca.ts';
import { type Certificate, selfSigned } from '../../wire/certificate.ts';
import { message } from '../../wire/messages.ts';
import { RawClient } from '../../wire/raw-client.ts';
import { forwardTo, type Sidecar, type SidecarSettings, startSidecar } from '../../wire/sidecar.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';

export const HOST = 'api.example.com';

/** A path of which the upstream takes requests and says nothing. */
export const NEVER_ANSWERED = '/never-answered';

/** What arrived of a request. */
export interface Arrived {
  readonly version: string;
  readonly path: string;
  readonly host: string | undefined;
  readonly authorization: string | undefined;
}

export interface Upstream {
  readonly port: number;
  readonly caFile: string;
  readonly arrived: Arrived[];
  /** Handshakes that came to an end. */
  readonly secured: () => number;
}

export async function startTlsUpstream(
  speaks: 'http1' | 'both' = 'both',
  certificate: Certificate = selfSigned(HOST, 'other.example.com'),
): Promise<Upstream> {
  const arrived: Arrived[] = [];
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { httpVersion, url = '', headers } = request;
    const host = headers.host ?? (headers[':authority'] as string | undefined);
    arrived.push({ version: httpVersion, path: url, host, authorization: headers.authorization });
    if (url !== NEVER_ANSWERED) response.end(`hello ${url}`);
  };
  const server =
    speaks === 'http1'
      ? createServer({ ...certificate, ALPNProtocols: ['http/1.1'] }, answer)
      : createSecureServer({ ...certificate, allowHTTP1: true }, answer as never);
  let secured = 0;
  server.on('secureConnection', () => secured++);
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    if ('closeAllConnections' in server) server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    caFile: await temporaryFile('upstream.crt', certificate.cert),
    arrived,
    secured: () => secured,
  };
}

/** Every name is this machine. */
export const LOOPBACK: Network = {
  ...systemNetwork,
  connectTls: (options) => systemNetwork.connectTls({ ...options, host: '127.0.0.1' }),
  connectTcp: (options) => systemNetwork.connectTcp({ ...options, host: '127.0.0.1' } as typeof options),
};

export interface Interception {
  readonly sidecar: Sidecar;
  /** PEM of the root. */
  readonly root: string;
  /** A client whose CONNECT was answered 200. */
  connected(authority?: string): Promise<RawClient>;
  /** The same, and TLS over it. Rejects where the handshake fails. */
  secured(options?: ConnectionOptions, authority?: string): Promise<RawClient>;
}

export async function intercepting(
  upstream: Upstream,
  {
    entry = {},
    proxy = {},
    names = [HOST],
    certifiedBy = systemClock,
    ...settings
  }: {
    readonly entry?: Partial<AllowedDestination>;
    readonly proxy?: Partial<ForwardProxyConfig>;
    /** That the authority may sign for. */
    readonly names?: readonly string[];
    /** The clock that certificates are made by; apps judge them by the system's. */
    readonly certifiedBy?: Clock;
  } & SidecarSettings = {},
): Promise<Interception> {
  const authority = createAuthority({ names, nowMs: certifiedBy.now().wallMs });
  const sidecar = await startSidecar({
    forwardProxy: forwardTo(
      { address: { host: HOST, port: upstream.port }, protocol: 'https', caFile: upstream.caFile },
      entry,
      { connect: 'intercept', ...proxy },
    ),
    leaves: new LeafCertificates(authority, certifiedBy),
    network: LOOPBACK,
    ...settings,
  });
  const ownAuthority = `${HOST}:${upstream.port}`;
  const connected = async (to = ownAuthority): Promise<RawClient> => {
    const client = await sidecar.connect();
    client.send(connectTo(to));
    const head = await client.head();
    if (head.status !== 200) throw new Error(head.startLine);
    return client;
  };
  return {
    sidecar,
    root: authority.root,
    connected,
    async secured(options, to) {
      const client = await connected(to);
      return await secure(client, { ca: authority.root, servername: HOST, ...options });
    },
  };
}

export const connectTo = (authority: string): string =>
  message(`CONNECT ${authority} HTTP/1.1`, [`Host: ${authority}`]);

async function secure({ socket }: RawClient, options: ConnectionOptions): Promise<RawClient> {
  // From here on it is TLS that reads.
  socket.removeAllListeners('data');
  const tls = connect({ socket, ...options });
  await once(tls, 'secureConnect');
  return new RawClient(tls);
}

/** What TLS agreed on with `client`. */
export function tlsOf({ socket }: RawClient): TLSSocket {
  if (socket instanceof TLSSocket) return socket;
  throw new Error('a client without TLS');
}
