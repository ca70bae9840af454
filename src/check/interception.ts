/** Hosts whose TLS ends in the sidecar. */

import { X509Certificate } from 'node:crypto';
import { access, constants } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import type { Config } from '../config/config.ts';
import { MAX_PEM_BYTES, readBoundedFile } from '../platform/files/bounded-file.ts';
import { formatAddress, isName, type ListenAddress, reachableAddress } from '../platform/net/address.ts';
import { connectTcp, connectTls } from '../platform/net/connect.ts';
import { TRUST_VARIABLES } from '../platform/trust-variables.ts';
import { certificatesIn, INTERCEPTION_ROOT } from '../platform/x509/pem.ts';
import { commonName, sidecarRoot } from './certificates.ts';
import {
  type About,
  about,
  type CheckContext,
  type Finding,
  inTime,
  mapConcurrent,
  wordsFor,
} from './check-context.ts';

/** The first variable that is set overrides the others. */
const OVERRIDING: readonly (readonly [program: string, variables: readonly string[]])[] = [
  ['Python requests', ['REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE']],
  ['pip', ['PIP_CERT', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE']],
  ['AWS CLI and SDKs', ['AWS_CA_BUNDLE', 'REQUESTS_CA_BUNDLE']],
  ['curl', ['CURL_CA_BUNDLE', 'SSL_CERT_FILE']],
  ['cargo', ['CARGO_HTTP_CAINFO', 'SSL_CERT_FILE']],
];

interface InterceptionOptions {
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Requested from each host, if set. */
  readonly path: string | undefined;
  /** Undefined if the system has no users. */
  readonly user: number | undefined;
}

const MAX_HOSTS = 100;

const WITHIN_MS = 5000;

interface Looked {
  readonly host: string;
  readonly port: number;
  readonly way: CapturedWay;
}

export async function checkInterception(
  options: InterceptionOptions,
  examination: CheckContext,
): Promise<Finding[]> {
  const { config, env } = options;
  if (config.interception === undefined || examination.isOffline) return [];
  const { directory } = config.interception;
  const of = about('interception');
  let root: X509Certificate;
  try {
    root = await sidecarRoot.read(directory);
  } catch (error) {
    const detail = `${sidecarRoot.fileIn(directory)}: ${wordsFor(error)}`;
    const remedy = 'look where a sidecar runs that has started, in a container that mounts this directory';
    return [of.warning('authority', detail, remedy)];
  }
  const found = of.ok('authority', `${directory} has the root of the sidecar's last start`);
  const hosts = hostsOf(config).slice(0, MAX_HOSTS);
  const trust = await checkTrust({ root, directory }, env, hosts, config);
  const looked = await mapConcurrent(hosts, (host) => checkHost(host, root, options, examination));
  return [found, ...trust, ...looked.flat()];
}

/** A pattern has no name to try. */
function hostsOf({ forwardProxy, capture, redirect, listen }: Config): readonly Looked[] {
  const proxied = forwardProxy?.connect === 'intercept' ? forwardProxy.allow : [];
  const isExact = ({ host }: { readonly host: string }) => isName(host) && !host.startsWith('*.');
  return [
    ...proxied.filter(isExact).map(
      ({ host, port = 443 }): Looked => ({
        host,
        port,
        way: { kind: 'proxy', proxy: reachableAddress(listen) },
      }),
    ),
    ...(capture?.hosts ?? []).flatMap(({ host, ports: [port], address }): Looked[] =>
      port === undefined ? [] : [{ host, port, way: { kind: 'hosts file', address } }],
    ),
    ...(redirect?.hosts ?? [])
      .filter(isExact)
      .map(({ host, port = 443 }): Looked => ({ host, port, way: { kind: 'kernel' } })),
  ];
}

async function checkHost(
  looked: Looked,
  root: X509Certificate,
  { path, user }: InterceptionOptions,
  examination: CheckContext,
): Promise<Finding[]> {
  // If the time is up, the host is not what has to be mended.
  if (examination.signal.aborted) return [];
  const { host, port, way } = looked;
  const of = about(`host ${host}`);
  const opening = openAsApp(looked, root);
  let opened: Awaited<typeof opening.opened>;
  try {
    opened = await inTime(opening.opened, examination, WITHIN_MS, opening.abandon);
  } catch (error) {
    if (examination.signal.aborted) return [];
    const why = wordsFor(error);
    return [of.warning('capture', `${host}:${port}: ${why}`, remedyFor(way, user))];
  }
  try {
    if (!opened.isOurs) {
      const detail = `${host}:${port} at ${opened.address} shows a certificate of ${opened.issuer}, and not the sidecar's`;
      return [of.warning('capture', detail, remedyFor(way, user))];
    }
    const captured = of.ok('capture', `${host}:${port} comes to the sidecar by the ${NAMES[way.kind]}`);
    if (path === undefined) return [captured];
    const asking = requestAsApp(opened.socket, looked, path);
    const answer = await inTime(asking, examination, 3 * WITHIN_MS, opening.abandon);
    return [captured, judge(answer, `GET https://${host}:${port}${path.replace(/\?.*$/s, '?…')}`, of)];
  } catch (error) {
    const detail = `${host}:${port}: ${wordsFor(error)}`;
    return [of.failure('captured_request', 'provider_unavailable', detail, "look at the sidecar's log")];
  } finally {
    opening.abandon();
  }
}

const NAMES = { proxy: 'forward proxy', 'hosts file': 'hosts file', kernel: 'kernel' } as const;

function remedyFor({ kind }: CapturedWay, user: number | undefined): string {
  switch (kind) {
    case 'proxy':
      return 'start the sidecar, or look at its log: this asked its own proxy';
    case 'hosts file':
      return "give the pod the hostAliases of the mode hosts, and look whether this container has the pod's hosts file";
    case 'kernel':
      return `look whether \`token-sidecar redirect\` has run in this pod; connections of the sidecar's own user (this is user ${user ?? 'unknown'}) are left alone, so look as another one`;
  }
}

function judge(
  { status, error }: { status: number; error: string | undefined },
  shown: string,
  of: About,
): Finding {
  const detail = `${shown} as an app: ${status}${error === undefined ? '' : ` ${error}`}`;
  if (error !== undefined) {
    const remedy = `look up ${error}: token-sidecar explain ${error}`;
    return of.failure('captured_request', 'provider_unavailable', detail, remedy);
  }
  if (status === 401) {
    const remedy = 'compare audience, scope and issuer of the token with what the host wants';
    return of.failure('captured_request', 'credentials_rejected', detail, remedy);
  }
  return of.ok('captured_request', detail);
}

type CapturedWay =
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
  readonly isOurs: boolean;
  readonly issuer: string;
  readonly address: string;
}

const MAX_HEAD_BYTES = 64 * 1024;

/** With the hosts file, as apps do. */
function openAsApp(
  { host, port, way }: AppDestination,
  root: X509Certificate,
): { readonly opened: Promise<OpenedAsApp>; readonly abandon: () => void } {
  const sockets: Socket[] = [];
  const keep = <S extends Socket>(socket: S): S => {
    sockets.push(socket);
    socket.on('error', () => {});
    return socket;
  };
  const open = async (): Promise<OpenedAsApp> => {
    const tunnel =
      way.kind === 'proxy' ? await throughProxy(keep(connectTcp(way.proxy)), `${host}:${port}`) : undefined;
    const to = tunnel === undefined ? { host, port } : { socket: tunnel };
    // Judged below, before anything is sent.
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

async function requestAsApp(
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

type Environment = Readonly<Record<string, string | undefined>>;

type Trust =
  | { readonly kind: 'trusting' }
  /** Where the sidecar runs, its own variable: whom it trusts in upstreams. */
  | { readonly kind: 'of the sidecar'; readonly file: string }
  | { readonly kind: 'lacking'; readonly why: string };

const OF_THE_SIDECAR = 'NODE_EXTRA_CA_CERTS';

/** A bundle of public roots has fewer. */
const MAX_CERTIFICATES = 2000;

async function checkTrust(
  { root, directory }: { readonly root: X509Certificate; readonly directory: string },
  env: Environment,
  hosts: readonly { readonly host: string }[],
  config: Config,
): Promise<Finding[]> {
  const of = about('interception');
  const bundle = join(directory, 'bundle.pem');
  const set = TRUST_VARIABLES.flatMap(({ name }) => (env[name] ? [[name, env[name]] as const] : []));
  const files = [...new Set(set.map(([, file]) => file))];
  const trusts = await mapConcurrent(files, (file) => trustBy(file, root));
  const isBesideSidecar = env[OF_THE_SIDECAR] !== undefined && (await mayWrite(directory));
  const judged = new Map(
    set.map(([name, file]) => {
      const trust = trusts[files.indexOf(file)] as Trust;
      const isOwn = name === OF_THE_SIDECAR && isBesideSidecar && trust.kind === 'lacking';
      return [name, isOwn ? ({ kind: 'of the sidecar', file } as const) : trust] as const;
    }),
  );
  return [
    ...variableFindings(judged, bundle, of),
    ...overridingFindings(judged, bundle, of),
    ...(config.forwardProxy?.connect === 'intercept' ? proxyFindings(env, hosts, config, of) : []),
  ];
}

/** Only the sidecar may: the containers of apps mount it read-only. */
async function mayWrite(directory: string): Promise<boolean> {
  return await access(directory, constants.W_OK).then(
    () => true,
    () => false,
  );
}

function variableFindings(judged: ReadonlyMap<string, Trust>, bundle: string, of: About): Finding[] {
  if (judged.size === 0) {
    return [
      of.ok('trust', 'none of the variables of trust is set here: look in a container of the app for those'),
    ];
  }
  const trusting = [...judged].filter(([, { kind }]) => kind === 'trusting').map(([name]) => name);
  const own = [...judged.values()].find((trust) => trust.kind === 'of the sidecar');
  const lacking = [...judged].flatMap(([name, trust]) =>
    trust.kind === 'lacking' ? [{ name, why: trust.why }] : [],
  );
  return [
    ...(trusting.length === 0 ? [] : [of.ok('trust', `the sidecar is trusted by ${trusting.join(', ')}`)]),
    ...(own === undefined ? [] : [of.ok('trust', ofTheSidecar(own.file))]),
    ...[...Map.groupBy(lacking, ({ why }) => why)].map(([why, variables]) => {
      const names = variables.map(({ name }) => name);
      const served = TRUST_VARIABLES.filter(({ name }) => names.includes(name)).map((one) => one.servedBy);
      const remedy = `set ${names.length === 1 ? 'it' : 'each'} to ${bundle}, or restart the container: ${served.join(', ')} will not trust the sidecar`;
      return of.warning('trust', `${names.join(', ')}: ${why}`, remedy);
    }),
  ];
}

function ofTheSidecar(file: string): string {
  return `${OF_THE_SIDECAR} is the sidecar's own here: it trusts ${file} in upstreams, and bundle.pem has that for apps, too`;
}

/** A variable whose file lacks the root overrides one whose file has it. */
function overridingFindings(judged: ReadonlyMap<string, Trust>, bundle: string, of: About): Finding[] {
  return OVERRIDING.flatMap(([program, variables]) => {
    const set = variables.filter((name) => judged.has(name));
    const [first, ...others] = set;
    if (first === undefined || judged.get(first)?.kind === 'trusting') return [];
    const overridden = others.filter((name) => judged.get(name)?.kind === 'trusting');
    if (overridden.length === 0) return [];
    const detail = `${first} overrides ${overridden.join(', ')} for ${program}`;
    return [of.warning('overriding', detail, `take ${first} away, or set it to ${bundle}`)];
  });
}

/** Programs prefer the lower-case spelling. */
const PROXY_VARIABLES = ['https_proxy', 'HTTPS_PROXY'] as const;
const DIRECT_VARIABLES = ['no_proxy', 'NO_PROXY'] as const;

function proxyFindings(
  env: Environment,
  hosts: readonly { readonly host: string }[],
  { listen }: Config,
  of: About,
): Finding[] {
  const own = new URL(`http://${formatAddress(reachableAddress(listen))}`).host;
  const given = PROXY_VARIABLES.flatMap((name) => (env[name] ? [[name, env[name]] as const] : []));
  const other = given.filter(([, url]) => !URL.canParse(url) || new URL(url).host !== own);
  const excluded = DIRECT_VARIABLES.map((name) => {
    const entries = (env[name] ?? '').split(',').map((entry) => entry.trim().toLowerCase());
    const names = hosts.map(({ host }) => host);
    return [name, names.filter((host) => entries.some((entry) => isExcluded(host, entry)))] as const;
  }).filter(([, names]) => names.length > 0);
  return [
    // The address may contain a password.
    ...other.map(([name]) =>
      of.warning('overriding', `${name} names another proxy than the sidecar's`, `set it to http://${own}`),
    ),
    ...excluded.map(([name, excludedHosts]) =>
      of.warning(
        'overriding',
        `${name} excludes ${excludedHosts.join(', ')}: past the sidecar, without a token`,
        `take what matches out of ${name}`,
      ),
    ),
  ];
}

function isExcluded(host: string, entry: string): boolean {
  const suffix = entry.replace(/^\*?\./, '');
  return entry === '*' || (suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`)));
}

async function trustBy(file: string, root: X509Certificate): Promise<Trust> {
  let text: string;
  try {
    text = await readBoundedFile(file, MAX_PEM_BYTES);
  } catch (error) {
    return { kind: 'lacking', why: `${file}: ${wordsFor(error)}` };
  }
  const found = certificatesIn(text, MAX_CERTIFICATES);
  if (found.some(({ raw }) => raw.equals(root.raw))) return { kind: 'trusting' };
  const theirs = found.some(({ subject }) => subject.includes(`CN=${INTERCEPTION_ROOT} `));
  const why = theirs
    ? 'has the root of an earlier start of the sidecar, and not of the last'
    : "lacks the sidecar's root";
  return { kind: 'lacking', why: `${file} ${why}` };
}
