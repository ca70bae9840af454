/**
 * Connections to examined servers: the bytes, through a proxy if there is one, TLS over them, and what its handshake has
 * shown.
 */

import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import type { EgressProxyConfig } from '../config/config.ts';
import { systemCodeOf } from '../platform/errors.ts';
import { MAX_PEM_BYTES, readBoundedFile } from '../platform/files/bounded-file.ts';
import { connectTcp, connectTls } from '../platform/net/connect.ts';
import { connectionRemedy } from '../token/why-no-token.ts';
import {
  commonName,
  describeValidity,
  isShownBySidecar,
  namesOf,
  trustedBy,
  validityOf,
} from './certificates.ts';
import { type About, type Destination, type Examination, type Finding, inTime } from './examination.ts';
import type { StepName } from './steps.ts';

/** Undefined if the host is reached without one. */
export async function proxyOnTheWay({
  egressProxy,
  host,
}: Destination): Promise<EgressProxyConfig | undefined> {
  if (egressProxy === undefined) return undefined;
  const { goesThrough } = await import('../token/egress/egress-tunnel.ts');
  return goesThrough(egressProxy, host) ? egressProxy : undefined;
}

/** What to do about a failed connection. @param why in the words of wordsFor. */
export function remedyForNoConnection(why: string): string {
  return connectionRemedy(why) ?? 'check host and port, and NetworkPolicies';
}

/**
 * The bytes of a connection to the host, possibly through a tunnel. The caller closes it.
 * @throws if none is made in time; wordsFor says why.
 */
export async function openStream(
  { host, port, withinMs, lookup }: Destination,
  proxy: EgressProxyConfig | undefined,
  examination: Examination,
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
  // Once connected, its reader gets the error.
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
 * TLS over a stream, with the sidecar's own offer. The caller closes it, and then the stream.
 * @param trust `anybody` if the caller judges the certificate and sends nothing.
 * @throws if no handshake succeeds in time, and for strangers unless anybody will do; wordsFor says why.
 */
export async function secure(
  to: Destination,
  stream: Socket,
  trust: 'the trusted' | 'anybody',
  examination: Examination,
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
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot show tokens to strangers.
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

/** No more of a chain is followed. */
const MAX_CHAIN_LENGTH = 10;

/** From the server's own to the authority's, as far as both sides know it. */
function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (next?.raw !== undefined && chain.length < MAX_CHAIN_LENGTH) {
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
  }
  return chain;
}

/** @param socket after its handshake, with the certificate not yet judged. */
export async function describeTls(
  socket: TLSSocket,
  { host, tls: { caFile, serverName }, mustSpeak, trustDirectory }: Destination,
  step: StepName,
  of: About,
  nowMs: number,
): Promise<Finding> {
  const chain = chainOf(socket);
  const [own] = chain;
  if (own === undefined) {
    return of.failure(step, 'provider_unavailable', 'no certificate was shown', 'look at the server');
  }
  const validity = validityOf(own, nowMs);
  const shown = `${socket.getProtocol() ?? 'TLS'}, certificate of ${namesOf(own)}, ${describeValidity(validity)}`;
  const refusal = socket.authorizationError as unknown as string | Error | null | undefined;
  if (!socket.authorized) {
    if (await isShownBySidecar(chain, trustDirectory)) return redirectedHere(step, of);
    const code = typeof refusal === 'string' ? refusal : (systemCodeOf(refusal) ?? 'not trusted');
    const detail = `${shown}, signed by ${commonName(own.issuer)}: ${code}`;
    return of.failure(step, 'provider_unavailable', detail, remedyFor(code, serverName ?? host));
  }
  const root = chain.at(-1) ?? own;
  const spoken = socket.alpnProtocol ? `; speaks ${socket.alpnProtocol}` : '';
  const detail = `${shown}, signed by ${commonName(own.issuer)}, trusted through ${commonName(root.subject)} ${trustedBy(root, caFile)}${spoken}`;
  if (mustSpeak !== undefined && socket.alpnProtocol !== mustSpeak) {
    const remedy = 'set protocol: auto, or http1, or make the upstream speak HTTP/2';
    return of.failure(step, 'configuration', `${detail}: it does not choose ${mustSpeak}`, remedy);
  }
  return validity.state === 'ending'
    ? of.warning(step, detail, 'have the certificate of the server renewed')
    : of.ok(step, detail);
}

/** Beside an app, its own connections are redirected, too. That is correct, but hides the host: it is not examined further. */
function redirectedHere(step: StepName, of: About): Finding {
  const user = process.getuid?.() ?? 'unknown';
  const detail = `the sidecar answers in the place of this host: connections of this process (user ${user}) are redirected to it, as an app's are`;
  const remedy = "to look at the host itself, run check as the sidecar's user";
  return of.warning(step, detail, remedy, 'provider_unavailable');
}

function remedyFor(code: string, name: string): string {
  if (/ALTNAME_INVALID/.test(code)) {
    return `use a host that is in its certificate instead of ${name}, or set tls.serverName to one`;
  }
  return connectionRemedy(code) ?? 'look at the certificate of the server';
}

/** A clear-text HTTP server answers a TLS greeting within this time, or never. */
const GREETING_MS = 2000;

/** Whether a port expects TLS, as far as can be seen: an alert is as good as a handshake. */
export async function speaksTls(
  { host, port, lookup, withinMs }: Destination,
  examination: Examination,
): Promise<boolean> {
  const answered = Promise.withResolvers<boolean>();
  // No certificate is judged: nothing is sent, and only the protocol matters.
  const greeting = { host, port, rejectUnauthorized: false, ...(lookup === undefined ? {} : { lookup }) };
  const socket = connectTls(greeting);
  socket.once('secureConnect', () => answered.resolve(true));
  socket.on('error', (error) => answered.resolve(/ALERT/.test(systemCodeOf(error) ?? '')));
  socket.on('close', () => answered.resolve(false));
  try {
    return await inTime(answered.promise, examination, Math.min(GREETING_MS, withinMs));
  } catch {
    // It does not answer a TLS greeting.
    return false;
  } finally {
    socket.destroy();
  }
}
