/** Loaded only if a credential has an egress proxy. */

import type { Agent } from 'node:http';
import type { ConnectionOptions } from 'node:tls';
import type { EgressProxyConfig } from '../../config/config.ts';
import { connectTcp, connectTls } from '../../platform/net/connect.ts';
import type { Clock } from '../../platform/time/clock.ts';
import { EgressTunnel, goesThrough } from '../egress/egress-tunnel.ts';

interface EgressOptions {
  readonly proxy: EgressProxyConfig;
  /** From the start of a connection to the proxy's consent. */
  readonly withinMs: number;
  readonly clock: Clock;
}

/** Before the request's own timeout, so that the error names the proxy. */
const SOONER = 0.95;

/** @param agent one for TLS. */
export function takeThrough(agent: Agent, { proxy, withinMs, clock }: EgressOptions): void {
  const connectDirectly = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const host = options.host?.replace(/^\[|\]$/g, '') ?? 'localhost';
    if (!goesThrough(proxy, host)) return connectDirectly(options, callback);
    const port = Number(options.port);
    const tunnel = new EgressTunnel({ proxy, host, port, withinMs: withinMs * SOONER, clock, connectTcp });
    return connectTls({ ...(options as ConnectionOptions), socket: tunnel });
  };
}
