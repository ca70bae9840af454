import { readFileSync } from 'node:fs';
import http, { type ClientRequest } from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import type { RouteConfig, TlsConfig } from '../config/config.ts';
import { messageOf, SidecarError } from '../errors.ts';
import type { Fields } from './header-rules.ts';

export interface UpstreamRequestHead {
  readonly method: string;
  readonly target: string;
  readonly fields: Fields;
}

/** The connections of one route to its upstream. */
export interface UpstreamPool {
  readonly protocol: 'http' | 'https';
  /** Begins a request on an idle connection, or on a new one. */
  request(head: UpstreamRequestHead): ClientRequest;
  /** Begins a request that asks to switch protocols, on a connection of its own. */
  requestUpgrade(head: UpstreamRequestHead): ClientRequest;
  /** Closes connections that carry no request, so that the next one is begun on a new connection. */
  discardIdle(): void;
  /** Closes every connection. */
  close(): void;
}

/** Answers may carry larger heads than the app may send; cookies and policies do. */
const ANSWER_HEAD_BYTES = 128 * 1024;

/** How long one address of several may take before the next is tried (RFC 8305 §5 wants more patience than Node has). */
const ADDRESS_ATTEMPT_MS = 1_000;

/** @throws {SidecarError} `configuration` when a TLS file of the route cannot be read. */
export function createUpstreamPool(route: RouteConfig): UpstreamPool {
  const { upstream } = route;
  const tls = upstream.protocol === 'https' ? tlsOptions(route.name, route.tls, upstream.host) : {};
  const { request, Agent } = upstream.protocol === 'https' ? https : http;
  const connection = {
    ...tls,
    noDelay: true,
    autoSelectFamilyAttemptTimeout: Math.min(ADDRESS_ATTEMPT_MS, Math.ceil(route.timeouts.connectMs / 2)),
  };
  const pooled = new Agent({ ...connection, keepAlive: true, scheduling: 'lifo' });
  // A tunnel's ends close one direction at a time; a pooled connection that did so would look alive when it is not.
  const halfOpen: http.AgentOptions & { allowHalfOpen: boolean } = {
    ...connection,
    keepAlive: false,
    allowHalfOpen: true,
  };
  const single = new Agent(halfOpen);

  function begin(agent: InstanceType<typeof Agent>, head: UpstreamRequestHead): ClientRequest {
    const outgoing = request({
      agent,
      protocol: `${upstream.protocol}:`,
      host: upstream.host,
      port: upstream.port,
      method: head.method,
      path: head.target,
      headers: head.fields,
      setDefaultHeaders: false,
      insecureHTTPParser: false,
      maxHeaderSize: ANSWER_HEAD_BYTES,
    });
    // Node would silently drop the fields above its own limit; the size bounds them already.
    outgoing.maxHeadersCount = 0;
    return outgoing;
  }

  return {
    protocol: upstream.protocol,
    request: (head) => begin(pooled, head),
    requestUpgrade: (head) => begin(single, head),
    discardIdle() {
      for (const sockets of Object.values(pooled.freeSockets)) {
        for (const socket of sockets ?? []) socket.destroy();
      }
    },
    close() {
      pooled.destroy();
      single.destroy();
    },
  };
}

function tlsOptions(route: string, tls: TlsConfig, host: string): https.AgentOptions {
  const read = (key: keyof TlsConfig, path: string | undefined): Record<string, Buffer> => {
    if (path === undefined) return {};
    try {
      return { [key.replace('File', '')]: readFileSync(path) };
    } catch (error) {
      throw new SidecarError(
        'configuration',
        `route ${route}: tls.${key} ${path} cannot be read: ${messageOf(error)}`,
        { cause: error },
      );
    }
  };
  return {
    ...read('caFile', tls.caFile),
    ...read('certFile', tls.certFile),
    ...read('keyFile', tls.keyFile),
    // An address is no server name (RFC 6066 §3); the certificate is checked against it all the same.
    servername: tls.serverName ?? (isIP(host) === 0 ? host : ''),
    // Said aloud, so that NODE_TLS_REJECT_UNAUTHORIZED cannot send tokens to strangers.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
  };
}
