/** Common to the proxies that are a few lines on a Node library: how they are told what to do. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SERVER_NAME } from '../upstream.ts';
import type { ProxyKind } from './proxy.ts';

export interface NodeProxySettings {
  readonly port: number;
  readonly upstream: string;
  readonly authorization: string;
  readonly caFile: string;
  readonly serverName: string;
}

const VARIABLE = 'BENCH_PROXY';

/** On a library for HTTP/1.1, or on Node's own module for HTTP/2. The program is `NAME-server.ts`. */
export function nodeProxy(name: 'http-proxy' | 'undici' | 'node-http2'): ProxyKind {
  const isOwn = name === 'node-http2';
  return {
    name,
    token: 'static',
    protocols: [isOwn ? 'http2' : 'http1'],
    async version() {
      if (isOwn) return `Node ${process.versions.node}`;
      const file = join(import.meta.dirname, '../node_modules', name, 'package.json');
      const text = await readFile(file, 'utf8').catch(() => undefined);
      return text === undefined ? undefined : `${JSON.parse(text).version} (Node ${process.versions.node})`;
    },
    async prepare({ port, upstreamPort, tls, caFile, token }) {
      const settings: NodeProxySettings = {
        port,
        upstream: `${tls ? 'https' : 'http'}://127.0.0.1:${upstreamPort}`,
        authorization: `Bearer ${token}`,
        caFile,
        serverName: SERVER_NAME,
      };
      return {
        command: process.execPath,
        args: [join(import.meta.dirname, `${name}-server.ts`)],
        env: { [VARIABLE]: JSON.stringify(settings) },
      };
    },
  };
}

export function readNodeProxySettings(): NodeProxySettings {
  return JSON.parse(process.env[VARIABLE] ?? '');
}
