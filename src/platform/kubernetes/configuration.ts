/** Where the Kubernetes API is and how we authenticate. */

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { AgentOptions } from 'node:https';
import { dirname } from 'node:path';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { type DispatcherOptions, KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { Cluster } from '@kubernetes/client-node/dist/config_types.js';
import { SidecarError, systemCodeOf } from '../errors.ts';
import { connectTcp, connectTls } from '../net/connect.ts';
import { type Clock, elapsedMs, type Instant } from '../time/clock.ts';

/**
 * Connects by the product's rules, but to a kubeconfig's proxy by the client's. Only the kubeconfig may turn
 * verification off, not NODE_TLS_REJECT_UNAUTHORIZED.
 */
class OwnKubeConfig extends KubeConfig {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    super();
    this.#clock = clock;
  }

  override createDispatcherOptions(cluster: Cluster | null, options: AgentOptions): DispatcherOptions {
    const made = super.createDispatcherOptions(cluster, {
      ...options,
      rejectUnauthorized: options.rejectUnauthorized ?? true,
    });
    if (made.type !== 'agent') return made;
    const connect = connectorFor(made.connect as ConnectionOptions, this.#clock);
    return { type: 'agent', connect: connect as unknown as typeof made.connect };
  }
}

interface Configuration {
  readonly config: KubeConfig;
  readonly server: string;
  /** Undefined if the token is in no file. */
  readonly tokenFile: TokenFile | undefined;
}

/**
 * @param kubeconfig its path; by default the pod's service account.
 * @throws {SidecarError} `configuration` if neither leads to a server.
 */
export function loadConfiguration(kubeconfig: string | undefined, clock: Clock): Configuration {
  const config = new OwnKubeConfig(clock);
  if (kubeconfig === undefined) loadServiceAccount(config);
  else loadFile(config, kubeconfig);
  const server = config.getCurrentCluster()?.server;
  if (server === undefined || !URL.canParse(server) || server.includes('undefined')) {
    throw new SidecarError(
      'configuration',
      '--kubernetes-api: there is no service account here (KUBERNETES_SERVICE_HOST is not set): give a --kubeconfig',
    );
  }
  return { config, server: server.replace(/\/+$/, ''), tokenFile: watchTokenFile(config, clock) };
}

const FOLLOWED = 'followedTokenFile';

/** The client would use only the wall clock. */
function watchTokenFile(config: KubeConfig, clock: Clock): TokenFile | undefined {
  const user = config.getCurrentUser();
  const { tokenFile: path, ...others } = user?.authProvider?.config ?? {};
  if (user === null || typeof path !== 'string' || path === '') return undefined;
  const tokenFile = new TokenFile(path, clock);
  const authProvider = { ...user.authProvider, config: { ...others, [FOLLOWED]: path } };
  config.users = config.users.map((one) => (one.name === user.name ? { ...one, authProvider } : one));
  config.addAuthenticator({
    isAuthProvider: (one) => one.authProvider?.config?.[FOLLOWED] === path,
    async applyAuthentication(_user, options) {
      options.headers = { ...options.headers, Authorization: `Bearer ${await tokenFile.current()}` };
    },
  });
  return tokenFile;
}

function loadServiceAccount(config: KubeConfig): void {
  try {
    config.loadFromCluster();
  } catch (error) {
    const why = systemCodeOf(error) ?? 'not understood';
    throw new SidecarError('configuration', `the service account cannot be read: ${why}`);
  }
}

function loadFile(config: KubeConfig, path: string): void {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const why = systemCodeOf(error) ?? 'it is no file';
    throw new SidecarError('configuration', `--kubeconfig: ${path} cannot be read: ${why}`, { cause: error });
  }
  try {
    config.loadFromString(text);
    config.makePathsAbsolute(dirname(path));
  } catch (error) {
    // The cause quotes the file.
    throw new SidecarError('configuration', `--kubeconfig: ${path}: ${whyUnusable(error)}`);
  }
}

const MISSING = /^(?:clusters|contexts|users)\[\d+\](?:\.[a-z]+)+ is missing$/;

/** The parser's message would quote tokens and keys. */
function whyUnusable(error: unknown): string {
  const { mark, message = '' } = (error ?? {}) as {
    readonly mark?: { readonly line: number; readonly column: number };
    readonly message?: string;
  };
  if (mark !== undefined)
    return `line ${mark.line + 1}, column ${mark.column + 1}: expected valid YAML or JSON`;
  const code = systemCodeOf(error);
  if (code !== undefined) return `a file that it names cannot be read: ${code}`;
  return MISSING.test(message)
    ? message
    : 'expected a kubeconfig: a mapping with clusters, contexts and users';
}

const CONNECT_MS = 10_000;

interface Wanted {
  /** IPv6 without brackets. */
  readonly hostname: string;
  readonly protocol: string;
  /** Empty for the default. */
  readonly port: string;
}

type Made = (error: Error | null, socket: TLSSocket | null) => void;

export function connectorFor(options: ConnectionOptions, clock: Clock): (wanted: Wanted, made: Made) => void {
  return ({ hostname, protocol, port }, made) => {
    const secure = protocol === 'https:';
    const to = { ...options, host: hostname, port: Number(port) || (secure ? 443 : 80), noDelay: true };
    // fetch reads the chosen protocol from the socket.
    const socket = (
      secure ? connectTls({ ...to, ALPNProtocols: ['http/1.1', 'h2'] }) : connectTcp(to)
    ) as TLSSocket;
    const cancel = clock.after(CONNECT_MS, () => {
      socket.destroy(Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' }));
    });
    const fail = (error: Error): void => {
      cancel();
      made(error, null);
    };
    socket.once('error', fail);
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      cancel();
      socket.off('error', fail);
      made(null, socket);
    });
  };
}

const READ_INTERVAL_MS = 60_000;

/**
 * The kubelet renews the token. Read again after a minute by either clock: one may be set back, the other stand still.
 */
export class TokenFile {
  readonly #path: string;
  readonly #clock: Clock;
  #read: { readonly token: string; readonly at: Instant } | undefined;
  #refusals = 0;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /** @throws the system's error if the file cannot be read. */
  async current(): Promise<string> {
    const at = this.#clock.now();
    const read = this.#read;
    if (read !== undefined && elapsedMs(read.at, at) < READ_INTERVAL_MS) return read.token;
    const refusals = this.#refusals;
    const token = await readFile(this.#path, 'utf8');
    // It may be the refused token.
    if (refusals === this.#refusals) this.#read = { token, at };
    return token;
  }

  refused(): void {
    this.#refusals += 1;
    this.#read = undefined;
  }
}
