/** What a TLS handshake has shown, and whether a port expects one. */

import { X509Certificate } from 'node:crypto';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import { systemCodeOf } from '../platform/errors.ts';
import { connectTls } from '../platform/net/connect.ts';
import { connectionRemedy } from '../token/why-no-token.ts';
import { commonName, describeValidity, namesOf, trustedBy, validityOf } from './certificate.ts';
import type { Destination } from './destination.ts';
import { type Examination, inTime } from './examination.ts';
import type { About, Finding } from './finding.ts';
import { isShownBySidecar } from './sidecar-root.ts';
import type { StepName } from './steps.ts';

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
