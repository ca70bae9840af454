import { caddy } from './caddy.ts';
import { envoy } from './envoy.ts';
import { haproxy } from './haproxy.ts';
import { nghttpx } from './nghttpx.ts';
import { nginx } from './nginx.ts';
import { nodeProxy } from './node-proxy.ts';
import type { ProxyKind } from './proxy.ts';
import { sidecar } from './sidecar.ts';

/** In the order of the tables. */
export const ALL_PROXIES: readonly ProxyKind[] = [
  sidecar,
  nginx,
  haproxy,
  envoy,
  nghttpx,
  caddy,
  nodeProxy('undici'),
  nodeProxy('http-proxy'),
  nodeProxy('node-http2'),
];
