import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { expect, onTestFinished } from 'vitest';
import type { Config, GatewayConfig } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { gatewayFrontend } from '../../src/gateway/gateway.ts';
import { type KernelBuffers, openKernelBuffers } from '../../src/gateway/kernel-buffers.ts';
import { createLogger } from '../../src/platform/log/logger.ts';
import { type Clock, systemClock } from '../../src/platform/time/clock.ts';
import { type Sidecar, startSidecar } from '../../src/sidecar/sidecar.ts';
import { type Certificate, createCertificateAuthority } from '../support/certificate-authority.ts';

/** What the upstream wants to see; in no log line of the gateway. */
export const UPSTREAM_TOKEN = 'upstream-token-0123456789';

/** Signs what the callers of all tests show. */
export const callers = createCertificateAuthority('callers');
export const servers = createCertificateAuthority('servers');

/** As an entry of `gateway.callers`, with what is left out put in. */
export interface CallerEntry {
  readonly name: string;
  readonly match: Readonly<Record<string, string>>;
  readonly allowedRoutes?: readonly string[];
  readonly allowedCredentials?: readonly string[];
  readonly limits?: Readonly<Record<string, number>>;
}

export interface GatewaySettings {
  readonly callers?: readonly CallerEntry[];
  /** Beside the usual: routes `api` at /api/ and `admin` at /admin/. */
  readonly file?: Readonly<Record<string, unknown>>;
  readonly gateway?: Readonly<Record<string, unknown>>;
  readonly clock?: Clock;
  /** What counts against the memory limit for the buffers of sockets. */
  readonly socketBytes?: () => number;
  /** Of the cluster whose service account tokens callers show. */
  readonly kubeconfig?: string;
  /** Of the server behind it; says `ok` to everything unless given. */
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => void;
}

/** The identity of most tests, and an entry that lets it use `api`. */
export const WEB = 'spiffe://cluster.local/ns/shop/sa/web';
export const WEB_ENTRY: CallerEntry = { name: 'web', match: { spiffe: WEB }, allowedRoutes: ['api'] };
export const web = callers.issue('web', WEB);

export interface GatewayAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** Of a problem document. */
  readonly code: string | undefined;
  readonly detail: string | undefined;
}

/** A gateway as the command wires it, with files that can be changed, and an upstream that keeps what came. */
export class RunningGateway {
  readonly sidecar: Sidecar;
  readonly directory: string;
  readonly upstream: Upstream;
  readonly logLines: string[];
  readonly #settings: GatewaySettings;

  constructor(
    sidecar: Sidecar,
    directory: string,
    upstream: Upstream,
    logLines: string[],
    settings: GatewaySettings,
  ) {
    this.sidecar = sidecar;
    this.directory = directory;
    this.upstream = upstream;
    this.logLines = logLines;
    this.#settings = settings;
  }

  get port(): number {
    return this.sidecar.proxyAddress.port;
  }

  /** How to reach it, as this caller. */
  as(caller: Certificate | undefined, options: ConnectionOptions = {}): ConnectionOptions {
    return {
      host: '127.0.0.1',
      port: this.port,
      ca: servers.cert,
      servername: 'gateway.test',
      ...(caller === undefined ? {} : { cert: caller.cert, key: caller.key }),
      ...options,
    };
  }

  /** One request over HTTP/1.1, on a connection of its own unless there is an agent. */
  async get(
    caller: Certificate | undefined,
    path = '/api/',
    options: { headers?: Record<string, string>; agent?: Agent; tls?: ConnectionOptions } = {},
  ): Promise<GatewayAnswer> {
    const { headers, agent, tls } = options;
    const request = httpsRequest({
      ...this.as(caller, tls),
      path,
      headers: { host: 'gateway.test', ...headers },
      agent: agent ?? new Agent({ keepAlive: false }),
    } as RequestOptions);
    request.end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    let body = '';
    for await (const chunk of response.setEncoding('utf8')) body += chunk;
    return answerOf(response.statusCode ?? 0, response.headers, body);
  }

  /** A session of HTTP/2, closed when the test is over. */
  async http2(caller: Certificate | undefined, tls: ConnectionOptions = {}): Promise<ClientHttp2Session> {
    const session = connectHttp2(`https://gateway.test:${this.port}`, this.as(caller, tls) as object);
    session.on('error', () => {});
    onTestFinished(() => session.destroy());
    await once(session, 'connect');
    return session;
  }

  /** A TLS connection for octets as they are, closed when the test is over. */
  async raw(caller: Certificate | undefined, tls: ConnectionOptions = {}): Promise<TLSSocket> {
    const socket = connectTls(this.as(caller, { ALPNProtocols: ['http/1.1'], ...tls }));
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    await once(socket, 'secureConnect');
    return socket;
  }

  /** Sends octets on a connection of their own, and resolves to all that comes until it ends. */
  async sends(caller: Certificate | undefined, octets: string): Promise<string> {
    const socket = await this.raw(caller);
    socket.write(octets, 'latin1');
    let text = '';
    for await (const chunk of socket) text += (chunk as Buffer).toString('latin1');
    return text;
  }

  /** Writes another configuration and waits until it is in use. */
  async change(settings: Partial<GatewaySettings>): Promise<void> {
    const lines = this.logLines.length;
    await replaceFile(
      join(this.directory, 'config.yaml'),
      fileText({ ...this.#settings, ...settings }, this.directory, this.upstream.url),
    );
    await expect
      .poll(() => this.logLines.slice(lines).some((line) => line.includes('"generation":')), {
        timeout: 30_000,
      })
      .toBe(true);
  }

  /** Replaces one of its files. */
  replace(name: 'tls.crt' | 'tls.key' | 'ca.crt', text: string): Promise<void> {
    return replaceFile(join(this.directory, name), text);
  }

  /** The value of one series; undefined where there is none. */
  async metric(series: string): Promise<number | undefined> {
    const { port } = this.sidecar.adminAddress;
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const line = text.split('\n').find((one) => one.startsWith(`token_sidecar_${series} `));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  }

  async ready(): Promise<number> {
    return (await fetch(`http://127.0.0.1:${this.sidecar.adminAddress.port}/readyz`)).status;
  }
}

/** A server certificate that the callers of all tests trust. */
export function servingCertificate(name = 'gateway.test'): Certificate {
  return servers.issue(name, name);
}

/** A directory with all that the gateway reads, for the length of the test. */
export async function mountGateway(settings: GatewaySettings, upstream: string) {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const serving = servingCertificate();
  const path = join(directory, 'config.yaml');
  await writeFile(join(directory, 'tls.crt'), serving.cert);
  await writeFile(join(directory, 'tls.key'), serving.key);
  await writeFile(join(directory, 'ca.crt'), callers.cert);
  await writeFile(join(directory, 'token'), UPSTREAM_TOKEN);
  await writeFile(path, fileText(settings, directory, upstream));
  return { directory, path };
}

export async function startGateway(settings: GatewaySettings = {}): Promise<RunningGateway> {
  const upstream = await startUpstream(settings.answer);
  const { directory, path } = await mountGateway(settings, upstream.url);
  const load = (text?: string): Promise<Config> =>
    loadConfig({ config: { key: '--config', text: path } }, [], text);
  const config = await load();
  const logLines: string[] = [];
  const log = createLogger('debug', { write: (line) => void logLines.push(line) });
  const sidecar = await startSidecar({
    config,
    file: { path, text: undefined, load },
    log,
    quit: () => {},
    clock: settings.clock ?? systemClock,
    frontend: gatewayFrontend(config.gateway as GatewayConfig, {
      kubeconfig: settings.kubeconfig,
      kernel: kernelOf(settings),
    }),
  });
  onTestFinished(async () => {
    await sidecar.stop();
    expect(logLines.join('')).not.toContain(UPSTREAM_TOKEN);
  });
  await sidecar.ready;
  return new RunningGateway(sidecar, directory, upstream, logLines, settings);
}

function kernelOf({ socketBytes }: GatewaySettings): KernelBuffers {
  const kernel = openKernelBuffers();
  return socketBytes === undefined ? kernel : { ...kernel, charged: socketBytes };
}

export interface Upstream {
  readonly url: string;
  /** As they came. */
  readonly requests: IncomingMessage[];
}

export async function startUpstream(answer?: GatewaySettings['answer']): Promise<Upstream> {
  const requests: IncomingMessage[] = [];
  const server: Server = createServer((request, response) => {
    requests.push(request);
    if (answer === undefined) {
      request.resume();
      request.on('end', () => response.end('ok'));
    } else answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

function fileText(
  { callers: entries, file, gateway }: GatewaySettings,
  directory: string,
  upstream: string,
): string {
  return JSON.stringify({
    admin: { listen: '127.0.0.1:0' },
    credentials: [{ name: 'default', grant: 'static', dir: directory, static: { tokenFile: 'token' } }],
    routes: [
      { name: 'api', match: { pathPrefix: '/api/' }, upstream },
      { name: 'admin', match: { pathPrefix: '/admin/' }, upstream },
    ],
    accessLog: 'all',
    shutdown: { drainTimeout: '5s' },
    ...file,
    gateway: {
      listen: '127.0.0.1:0',
      tls: { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') },
      clientCaFile: join(directory, 'ca.crt'),
      callers: entries ?? [WEB_ENTRY],
      drainDelay: '0ms',
      ...gateway,
    },
  });
}

async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.next`, text);
  await rename(`${path}.next`, path);
}

function answerOf(status: number, headers: GatewayAnswer['headers'], body: string): GatewayAnswer {
  const isProblem = headers['content-type'] === 'application/problem+json';
  const problem = (isProblem ? JSON.parse(body) : {}) as { code?: string; detail?: string };
  return { status, headers, body, code: problem.code, detail: problem.detail };
}

/**
 * One request of a session, read whole. By events from the start: a stream that has closed before an iterator is made of it,
 * as where many answers come in one record of TLS, loses what it has read on Node 24.
 */
export async function askHttp2(
  session: ClientHttp2Session,
  headers: Record<string, string> = {},
  body?: string,
): Promise<GatewayAnswer & { readonly trailers: Record<string, unknown> }> {
  const stream = session.request({ [constants.HTTP2_HEADER_PATH]: '/api/', ...headers });
  let answer: Record<string, string> = {};
  let trailers: Record<string, unknown> = {};
  let text = '';
  stream.on('response', (came) => {
    answer = came as unknown as Record<string, string>;
  });
  stream.on('trailers', (came) => {
    trailers = came;
  });
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  stream.end(body);
  await once(stream, 'close');
  if (stream.rstCode !== constants.NGHTTP2_NO_ERROR || answer[':status'] === undefined) {
    throw new Error(`the stream ended before its answer, by code ${stream.rstCode}`);
  }
  return { ...answerOf(Number(answer[':status']), answer, text), trailers };
}
