/** Where the Kubernetes API is, and how we authenticate: by a kubeconfig, or by the pod's service account. */

import { readFileSync } from 'node:fs';
import type { AgentOptions } from 'node:https';
import { dirname } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import { type DispatcherOptions, KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { Cluster } from '@kubernetes/client-node/dist/config_types.js';
import { SidecarError, systemCodeOf } from '../errors.ts';
import type { Clock } from '../time/clock.ts';
import { connectorFor } from './connector.ts';
import { TokenFile } from './token-file.ts';

/**
 * Connects by the product's rules, but through a proxy of the kubeconfig by the client's, and verifies the server unless
 * the kubeconfig says otherwise. If left unset, NODE_TLS_REJECT_UNAUTHORIZED would decide.
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
