import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readShippedNode } from '../../test/support/shipped-node.ts';
import { CLIENT_ID, CLIENT_SECRET } from '../token-endpoint.ts';
import { SERVER_NAME } from '../upstream.ts';
import type { ProxyKind } from './proxy.ts';

const ROOT = join(import.meta.dirname, '../..');

/** This project as it is shipped: the bundle, under the image's flags, with its own grant. */
export const sidecar: ProxyKind = {
  name: 'sidecar',
  token: 'obtained',
  protocols: ['http1', 'http2'],
  bindsTokens: true,
  async version() {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    return `${version} (Node ${process.versions.node})`;
  },
  async prepare({ directory, port, upstreamPort, tls, protocol, caFile, tokenUrl, bound }) {
    const secret = join(directory, 'secret');
    await mkdir(secret);
    await writeFile(join(secret, 'client_id'), CLIENT_ID);
    await writeFile(join(secret, 'client_secret'), CLIENT_SECRET, { mode: 0o600 });
    const file = join(directory, 'token-sidecar.json');
    await writeFile(
      file,
      JSON.stringify({
        listen: `127.0.0.1:${port}`,
        admin: { listen: '127.0.0.1:0' },
        credentials: [
          {
            name: 'default',
            tokenUrl: `http://127.0.0.1:${tokenUrl.port}${tokenUrl.path}`,
            dir: secret,
            ...(bound ? { proofOfPossession: 'dpop' } : {}),
          },
        ],
        routes: [
          {
            name: 'upstream',
            upstream: `${tls ? 'https' : 'http'}://127.0.0.1:${upstreamPort}`,
            ...(protocol === 'http2' ? { protocol: tls ? 'h2' : 'h2c' } : {}),
            ...(tls ? { tls: { caFile, serverName: SERVER_NAME } } : {}),
          },
        ],
      }),
    );
    const { flags, env } = await readShippedNode();
    return {
      command: process.execPath,
      args: [...flags, join(ROOT, 'dist/token-sidecar.js')],
      env: { ...env, TOKEN_SIDECAR_CONFIG: file },
    };
  },
};
