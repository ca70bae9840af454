/** Connects as an app would to hosts that lead to the sidecar. */

import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import type { ListenAddress } from '../platform/net/address.ts';
import { connectTcp, connectTls } from '../platform/net/connect.ts';
import { commonName } from './certificate.ts';

/** How apps' connections reach the sidecar. */
export type CapturedWay =
  | { readonly kind: 'proxy'; readonly proxy: ListenAddress }
  | { readonly kind: 'hosts file'; readonly address: string }
  | { readonly kind: 'kernel' };

interface AppDestination {
  readonly host: string;
  readonly port: number;
  readonly way: CapturedWay;
}

interface OpenedAsApp {
  readonly socket: TLSSocket;
  /** Whether the sidecar's authority issued the certificate. */
  readonly isOurs: boolean;
  readonly issuer: string;
  readonly address: string;
}

/** No more of an answer's head is read. Bytes. */
const MAX_HEAD_BYTES = 64 * 1024;

/** Names are resolved by the system's own lookup, hosts file included, as for apps. */
export function openAsApp(
  { host, port, way }: AppDestination,
  root: X509Certificate,
): { readonly opened: Promise<OpenedAsApp>; readonly abandon: () => void } {
  const sockets: Socket[] = [];
  const keep = <S extends Socket>(socket: S): S => {
    sockets.push(socket);
    // The awaited promise reports it; later errors are of no interest.
    socket.on('error', () => {});
    return socket;
  };
  const open = async (): Promise<OpenedAsApp> => {
    const tunnel =
      way.kind === 'proxy' ? await throughProxy(keep(connectTcp(way.proxy)), `${host}:${port}`) : undefined;
    const to = tunnel === undefined ? { host, port } : { socket: tunnel };
    // The certificate is judged below, and nothing is sent before that.
    const asked = {
      servername: host,
      ca: root.toString(),
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
    };
    const tls = keep(connectTls({ ...to, ...asked }));
    await eventOf(tls, 'secureConnect');
    const { raw } = tls.getPeerCertificate() as Partial<PeerCertificate>;
    const address = tls.remoteAddress ?? 'the proxy';
    const isElsewhere =
      way.kind === 'hosts file' && address !== way.address && address !== `::ffff:${way.address}`;
    return {
      socket: tls,
      isOurs: tls.authorized && !isElsewhere,
      issuer: raw === undefined ? 'nobody' : commonName(new X509Certificate(raw).issuer),
      address,
    };
  };
  return {
    opened: open(),
    abandon: () => {
      // TLS before its transport: in the other order Node 26.10 crashes with a memory fault.
      for (const socket of sockets.toReversed()) socket.destroy();
    },
  };
}

async function throughProxy(socket: Socket, authority: string): Promise<Socket> {
  await eventOf(socket, 'connect');
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  const { status, error } = await headOf(socket);
  if (status !== 200)
    throw new Error(`CONNECT was answered ${status}${error === undefined ? '' : ` ${error}`}`);
  return socket;
}

/** The answer to a GET, with the sidecar's own code if it answers itself. */
export async function requestAsApp(
  socket: TLSSocket,
  { host, port }: AppDestination,
  path: string,
): Promise<{ readonly status: number; readonly error: string | undefined }> {
  const authority = port === 443 ? host : `${host}:${port}`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${authority}\r\nConnection: close\r\n\r\n`);
  return await headOf(socket);
}

async function headOf(socket: Socket): Promise<{ status: number; error: string | undefined }> {
  const head = await new Promise<string>((resolve, reject) => {
    let said = '';
    const onData = (chunk: Buffer): void => {
      said += chunk.toString('latin1');
      if (!said.includes('\r\n\r\n') && said.length < MAX_HEAD_BYTES) return;
      socket.off('data', onData);
      socket.pause();
      resolve(said);
    };
    socket.on('data', onData);
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the connection ended without an answer')));
  });
  const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(head) ?? [];
  if (status === undefined) throw new Error('the answer is not HTTP/1.1');
  const [, error] = /\r\ntoken-sidecar-error: ([a-z0-9_]{1,64})\r\n/i.exec(head) ?? [];
  return { status: Number(status), error };
}

async function eventOf(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.once(event, () => resolve());
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the connection ended')));
  });
}
