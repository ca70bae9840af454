import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { EgressProxyConfig } from '../config/config.ts';
import { MAX_PEM_BYTES, readBoundedFile } from '../platform/files/bounded-file.ts';
import { connectTcp, connectTls } from '../platform/net/connect.ts';
import { connectionRemedy } from '../token/why-no-token.ts';
import { type CheckContext, type Destination, inTime } from './check-context.ts';

/** OpenSSL's name of the alert by which a server refuses all versions that it is offered. */
export const REFUSED_BY_ALPN = /NO_APPLICATION_PROTOCOL/;

/** Undefined without a proxy. */
export async function proxyOnTheWay({
  egressProxy,
  host,
}: Destination): Promise<EgressProxyConfig | undefined> {
  if (egressProxy === undefined) return undefined;
  const { goesThrough } = await import('../token/egress/egress-tunnel.ts');
  return goesThrough(egressProxy, host) ? egressProxy : undefined;
}

/** @param why from wordsFor. */
export function remedyForNoConnection(why: string): string {
  return connectionRemedy(why) ?? 'check host and port, and NetworkPolicies';
}

/**
 * The caller closes it.
 * @throws if none is made in time; wordsFor says why.
 */
export async function openStream(
  { host, port, withinMs, lookup }: Destination,
  proxy: EgressProxyConfig | undefined,
  examination: CheckContext,
): Promise<Socket> {
  const stands = Promise.withResolvers<void>();
  let stream: Socket;
  if (proxy === undefined) {
    stream = connectTcp({ host, port, ...(lookup === undefined ? {} : { lookup }) });
    stream.once('connect', stands.resolve);
  } else {
    const { EgressTunnel } = await import('../token/egress/egress-tunnel.ts');
    const { clock } = examination;
    const onStands = stands.resolve;
    const tunnel = { proxy, host, port, withinMs, clock, connectTcp, onStands };
    stream = new EgressTunnel(tunnel) as unknown as Socket;
  }
  // Once it is connected, its reader gets the error.
  stream.on('error', stands.reject);
  try {
    await inTime(stands.promise, examination, withinMs);
    return stream;
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

/**
 * The caller closes it, and then the stream.
 * @param trust `anybody` if the caller judges the certificate and sends nothing.
 * @throws if no handshake succeeds in time, and for strangers unless `anybody`; wordsFor says why.
 */
export async function secure(
  to: Destination,
  stream: Socket,
  trust: 'the trusted' | 'anybody',
  examination: CheckContext,
): Promise<TLSSocket> {
  const { host, tls, offers, withinMs } = to;
  const material = await readMaterial(to);
  const secured = Promise.withResolvers<void>();
  const socket = connectTls({
    socket: stream,
    host,
    servername: tls.serverName,
    ...material,
    ALPNProtocols: [...offers],
    minVersion: 'TLSv1.2',
    // NODE_TLS_REJECT_UNAUTHORIZED must not show tokens to strangers.
    rejectUnauthorized: trust === 'the trusted',
  });
  socket.once('secureConnect', secured.resolve);
  socket.on('error', secured.reject);
  try {
    await inTime(secured.promise, examination, withinMs);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function readMaterial({ tls, identity }: Destination) {
  const pem = (path: string | undefined) =>
    path === undefined ? undefined : readBoundedFile(path, MAX_PEM_BYTES);
  const [ca, cert, key] = await Promise.all([pem(tls.caFile), pem(tls.certFile), pem(tls.keyFile)]);
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
    ...identity,
  };
}
