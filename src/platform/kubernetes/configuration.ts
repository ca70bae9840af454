/** Where the Kubernetes API is, and how we authenticate: by a kubeconfig, or by the pod's service account. */

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
 * Connects by the product's rules, but through a proxy of the kubeconfig by the client's, and verifies the server
 * unless the kubeconfig says otherwise. If left unset, NODE_TLS_REJECT_UNAUTHORIZED would decide.
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
    // The options are declared as an object alone; fetch takes a function, too.
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
 * @param kubeconfig path of a kubeconfig; the pod's service account by default.
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
  return { config, server: server.replace(/\/+$/, ''), tokenFile: followTokenFile(config, clock) };
}

/** The key that replaces `tokenFile` in this configuration's user. */
const FOLLOWED = 'followedTokenFile';

/** Replaces the client's own reading of the user's token file, which uses only the wall clock. */
function followTokenFile(config: KubeConfig, clock: Clock): TokenFile | undefined {
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
    // Without its cause, which quotes the file.
    throw new SidecarError('configuration', `--kubeconfig: ${path}: ${whyUnusable(error)}`);
  }
}

/** What is missing, in the client's words, which describe only the format. */
const MISSING = /^(?:clusters|contexts|users)\[\d+\](?:\.[a-z]+)+ is missing$/;

/** Where a kubeconfig is wrong. The parser's own message would quote the lines around, with tokens and keys. */
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

/** Bounds a connection up to the end of its handshake. */
const CONNECT_MS = 10_000;

/** Where fetch wants a connection to. */
interface Wanted {
  /** A name or address, IPv6 without brackets. */
  readonly hostname: string;
  readonly protocol: string;
  /** Empty for the protocol's own. */
  readonly port: string;
}

type Made = (error: Error | null, socket: TLSSocket | null) => void;

/** Makes the connections of fetch by the product's rules, in the place of its own function. */
export function connectorFor(options: ConnectionOptions, clock: Clock): (wanted: Wanted, made: Made) => void {
  return ({ hostname, protocol, port }, made) => {
    const secure = protocol === 'https:';
    const to = { ...options, host: hostname, port: Number(port) || (secure ? 443 : 80), noDelay: true };
    // fetch reads what was chosen from the socket, where it has such a property.
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

const READ_EVERY_MS = 60_000;

/**
 * A service account's token, which the kubelet renews in its file. Read again after a minute by either clock: the wall
 * clock may be set back by hours, and the monotonic one stands still while the machine is suspended.
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
    if (read !== undefined && elapsedMs(read.at, at) < READ_EVERY_MS) return read.token;
    const refusals = this.#refusals;
    const token = await readFile(this.#path, 'utf8');
    // A token read before a refusal may be the refused one.
    if (refusals === this.#refusals) this.#read = { token, at };
    return token;
  }

  /** The server has refused it: the next request reads the file. */
  refused(): void {
    this.#refusals += 1;
    this.#read = undefined;
  }
}
