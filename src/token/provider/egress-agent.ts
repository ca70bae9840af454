/** Requests to a provider by way of a proxy. Loaded only where a credential has one. */

import type { Agent } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { Clock } from '../../clock.ts';
import type { EgressProxyConfig } from '../../config/config.ts';
import { EgressTunnel } from '../../egress/egress-tunnel.ts';
import { goesThrough } from '../../egress/goes-through.ts';

export interface EgressOptions {
  readonly proxy: EgressProxyConfig;
  /** From the beginning of a connection to the proxy's consent. */
  readonly withinMs: number;
  readonly clock: Clock;
}

/** A little sooner than who waits for the answer, so that it is the proxy that is named. */
const SOONER = 0.95;

/** Has the agent, one for TLS, make its connections inside of tunnels from now on, but for hosts that are reached directly. */
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
