/** The way to a server. Only handshakes are sent. */

import { X509Certificate } from 'node:crypto';
import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import type { EgressProxyConfig } from '../config/config.ts';
import { systemCodeOf } from '../platform/errors.ts';
import { formatAddress } from '../platform/net/address.ts';
import { connectTls } from '../platform/net/connect.ts';
import { connectionRemedy } from '../token/why-no-token.ts';
import { commonName, describeValidity, namesOf, sidecarRoot, trustedBy, validityOf } from './certificates.ts';
import {
  type About,
  type CheckContext,
  type Destination,
  type Finding,
  inTime,
  wordsFor,
} from './check-context.ts';
import { openStream, proxyOnTheWay, REFUSED_BY_ALPN, remedyForNoConnection, secure } from './connection.ts';
import type { StepName } from './steps.ts';

interface ReachSteps {
  readonly name: StepName;
  readonly connection: StepName;
  readonly tls: StepName;
}

interface Reached {
  readonly findings: readonly Finding[];
  readonly isReached: boolean;
  /** Empty if a proxy resolves the name. */
  readonly addresses: readonly string[];
}

/** The server's alert (RFC 7301 §3.2). */

const CODES_OF_CLEAR = [
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_HTTP_REQUEST',
  'ERR_SSL_RECORD_LAYER_FAILURE',
];

/** Never rejects: failures are findings. */
export async function reach(
  to: Destination,
  steps: ReachSteps,
  of: About,
  examination: CheckContext,
): Promise<Reached> {
  const { protocol } = to;
  const where = `${protocol}://${formatAddress(to)}`;
  const proxy = await proxyOnTheWay(to);
  const dialled = proxy ?? to;
  const key = proxy === undefined ? '' : 'egressProxy.url: ';
  const found = await findName(dialled.host, key, to, steps.name, of, examination);
  const addresses = proxy === undefined ? found.addresses : [];
  if (!found.isFound) return { findings: found.findings, isReached: false, addresses };

  const findings: Finding[] = [...found.findings];
  const ended = (isReached: boolean): Reached => ({ findings, isReached, addresses });
  const startedAt = performance.now();
  const way = await openWay(to, proxy, examination);
  if ('wrong' in way) {
    const remedy = remedyForNoConnection(way.wrong);
    findings.push(of.failure(steps.connection, 'provider_unavailable', `${where}: ${way.wrong}`, remedy));
    return ended(false);
  }
  const tookMs = Math.round(performance.now() - startedAt);
  const through = proxy === undefined ? '' : ` through the egress proxy ${formatAddress(proxy)}`;
  const reached = of.ok(steps.connection, `${where} reached in ${tookMs} ms${through}`);

  if (protocol === 'http') {
    way.stream.destroy();
    // TLS and HTTP reply differently to a greeting on another connection.
    const isTls = await speaksTls(to, examination);
    if (!isTls) {
      const other = await checkClearVersion(to, steps.connection, of, examination);
      findings.push(other ?? reached);
      return ended(other?.verdict !== 'failure');
    }
    findings.push(
      of.failure(
        steps.connection,
        'configuration',
        `${where} is a port that speaks TLS, and the URL says http`,
        `write https://${formatAddress(to)}`,
      ),
    );
    return ended(false);
  }
  findings.push(reached);
  const { finding, negotiated } = await shakeHands(to, way.stream, steps.tls, of, examination);
  const asksForHttp1 = finding.verdict === 'ok' && to.speaks === 'auto' && negotiated === 'h2';
  findings.push(asksForHttp1 ? await withoutHttp1(finding, to, steps.tls, of, examination) : finding);
  return ended(finding.verdict === 'ok' || (finding.verdict === 'warning' && finding.failure === undefined));
}

/** Undefined if the port speaks what the route does. */
async function checkClearVersion(
  to: Destination,
  step: StepName,
  of: About,
  examination: CheckContext,
): Promise<Finding | undefined> {
  if (to.speaks === undefined) return undefined;
  const { checkClearHttp1, checkClearHttp2 } = await import('./http-version.ts');
  const check = to.speaks === 'h2c' ? checkClearHttp2 : checkClearHttp1;
  return await check(to, step, of, examination);
}

/** The finding of an upstream that chose HTTP/2, and what it does with HTTP/1.1. */
async function withoutHttp1(
  finding: Finding,
  to: Destination,
  step: StepName,
  of: About,
  examination: CheckContext,
): Promise<Finding> {
  const { http1OverTls } = await import('./http-version.ts');
  const http1 = await http1OverTls(to, examination);
  if (http1 === 'taken') return finding;
  const detail = `${finding.detail} alone`;
  if (http1 === 'refused') return of.ok(step, detail);
  return of.warning(
    step,
    `${detail}: a connection of HTTP/1.1 is made and then closed without an answer`,
    'set protocol: h2; with auto the first request that comes by HTTP/1.1 gets 502',
  );
}

const MAX_ADDRESSES_SHOWN = 4;

async function findName(
  host: string,
  key: string,
  { withinMs, lookup = systemLookup as LookupFunction }: Destination,
  step: StepName,
  of: About,
  examination: CheckContext,
): Promise<{ findings: Finding[]; isFound: boolean; addresses: readonly string[] }> {
  if (isIP(host) !== 0) return { findings: [], isFound: true, addresses: [host] };
  const startedAt = performance.now();
  try {
    const addresses = await inTime(addressesOf(host, lookup), examination, withinMs);
    const tookMs = Math.round(performance.now() - startedAt);
    const shown = addresses.slice(0, MAX_ADDRESSES_SHOWN).join(', ');
    const more =
      addresses.length > MAX_ADDRESSES_SHOWN ? ` and ${addresses.length - MAX_ADDRESSES_SHOWN} more` : '';
    const finding = of.ok(step, `${host} is ${shown}${more} (${tookMs} ms)`);
    return { findings: [finding], isFound: true, addresses };
  } catch (error) {
    const why = wordsFor(error);
    const remedy =
      why === 'ENOTFOUND'
        ? "check the spelling of the host's name, and that the pod's DNS knows it"
        : "look at the pod's DNS: /etc/resolv.conf, CoreDNS, NetworkPolicies for port 53";
    const finding = of.failure(step, 'provider_unavailable', `${key}${host}: ${why}`, remedy);
    return { findings: [finding], isFound: false, addresses: [] };
  }
}

function addressesOf(host: string, lookup: LookupFunction): Promise<string[]> {
  return new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) => {
      if (error !== null) reject(error);
      else resolve((typeof found === 'string' ? [{ address: found }] : found).map(({ address }) => address));
    });
  });
}

async function openWay(
  to: Destination,
  proxy: EgressProxyConfig | undefined,
  examination: CheckContext,
): Promise<{ readonly stream: Socket } | { readonly wrong: string }> {
  try {
    return { stream: await openStream(to, proxy, examination) };
  } catch (error) {
    return { wrong: wordsFor(error) };
  }
}

async function shakeHands(
  to: Destination,
  stream: Socket,
  step: StepName,
  of: About,
  examination: CheckContext,
): Promise<{ readonly finding: Finding; readonly negotiated?: string | undefined }> {
  let socket: TLSSocket | undefined;
  try {
    // Judged below; nothing is sent over the connection.
    socket = await secure(to, stream, 'anybody', examination);
    const finding = await describeTls(socket, to, step, of, examination.clock.now().wallMs);
    return { finding, negotiated: socket.alpnProtocol || undefined };
  } catch (error) {
    return { finding: brokenHandshake(error, to, step, of) };
  } finally {
    socket?.destroy();
    stream.destroy();
  }
}

function brokenHandshake(error: unknown, to: Destination, step: StepName, of: About): Finding {
  const why = wordsFor(error);
  const where = formatAddress(to);
  if (CODES_OF_CLEAR.includes(why)) {
    const detail = `${where} is a port that does not speak TLS (${why}), and the URL says https`;
    return of.failure(step, 'configuration', detail, `write http://${where}, or the port that speaks TLS`);
  }
  if (REFUSED_BY_ALPN.test(why)) {
    const detail = `${where} takes none of the versions of HTTP that it is offered, ${to.offers.join(' and ')} (${why})`;
    const canChoose = to.speaks !== undefined && to.speaks !== 'auto';
    const remedy = canChoose ? 'set protocol: auto' : 'have the server take one of them';
    return of.failure(step, 'configuration', detail, remedy);
  }
  const remedy =
    connectionRemedy(why) ??
    (/ALERT|CERT/.test(why)
      ? 'the server wants another certificate of the client, or another version of TLS: see tls.certFile and the server’s log'
      : 'check that the port speaks TLS, and what stands between');
  return of.failure(step, 'provider_unavailable', `${where}: no TLS handshake (${why})`, remedy);
}

const MAX_CHAIN_LENGTH = 10;

/** The server's own first. */
function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (next?.raw !== undefined && chain.length < MAX_CHAIN_LENGTH) {
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
  }
  return chain;
}

/** @param socket with the certificate not yet judged. */
async function describeTls(
  socket: TLSSocket,
  { host, tls: { caFile, serverName }, speaks, trustDirectory }: Destination,
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
    if (await sidecarRoot.isBehind(chain, trustDirectory)) return redirectedHere(step, of);
    const code = typeof refusal === 'string' ? refusal : (systemCodeOf(refusal) ?? 'not trusted');
    const detail = `${shown}, signed by ${commonName(own.issuer)}: ${code}`;
    return of.failure(step, 'provider_unavailable', detail, remedyFor(code, serverName ?? host));
  }
  const root = chain.at(-1) ?? own;
  const spoken = socket.alpnProtocol ? `; speaks ${socket.alpnProtocol}` : '';
  const detail = `${shown}, signed by ${commonName(own.issuer)}, trusted through ${commonName(root.subject)} ${trustedBy(root, caFile)}${spoken}`;
  if (speaks === 'h2' && socket.alpnProtocol !== 'h2') {
    const remedy = 'set protocol: auto, or http1, or make the upstream speak HTTP/2';
    return of.failure(step, 'configuration', `${detail}: it does not choose h2`, remedy);
  }
  return validity.state === 'ending'
    ? of.warning(step, detail, 'have the certificate of the server renewed')
    : of.ok(step, detail);
}

/** Beside an app, our own connections are redirected, too, which hides the host. */
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

const GREETING_MS = 2000;

/** An alert is as good as a handshake. */
async function speaksTls(
  { host, port, lookup, withinMs }: Destination,
  examination: CheckContext,
): Promise<boolean> {
  const answered = Promise.withResolvers<boolean>();
  // Nothing is sent, and only the protocol matters.
  const greeting = { host, port, rejectUnauthorized: false, ...(lookup === undefined ? {} : { lookup }) };
  const socket = connectTls(greeting);
  socket.once('secureConnect', () => answered.resolve(true));
  socket.on('error', (error) => answered.resolve(/ALERT/.test(systemCodeOf(error) ?? '')));
  socket.on('close', () => answered.resolve(false));
  try {
    return await inTime(answered.promise, examination, Math.min(GREETING_MS, withinMs));
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
