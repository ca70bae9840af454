import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, requireProgram } from '../programs.ts';
import { SERVER_NAME } from '../upstream.ts';
import type { ProxyKind, ProxySetup } from './proxy.ts';

export const haproxy: ProxyKind = {
  name: 'haproxy',
  token: 'static',
  protocols: ['http1', 'http2'],
  version: async () => (await findProgram('haproxy'))?.version,
  async prepare(setup) {
    const file = join(setup.directory, 'haproxy.cfg');
    await writeFile(file, configuration(setup));
    const { path } = await requireProgram('haproxy');
    return { command: path, args: ['-db', '-q', '-f', file] };
  },
};

/** `tune.maxrewrite` is the room kept for added headers; its default would not hold a 4 KB token. */
function configuration({ port, upstreamPort, tls, protocol, caFile, token }: ProxySetup): string {
  const secure = tls
    ? `ssl verify required ca-file ${caFile} sni str(${SERVER_NAME}) verifyhost ${SERVER_NAME}`
    : '';
  const isHttp2 = protocol === 'http2';
  return `
global
  nbthread 1
  maxconn 4096
  tune.maxrewrite 8192
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout http-keep-alive 60s
  http-reuse always
frontend app
  bind 127.0.0.1:${port} backlog 4096 ${isHttp2 ? 'proto h2' : ''}
  http-request set-header Authorization "Bearer ${token}"
  default_backend api
backend api
  server upstream 127.0.0.1:${upstreamPort} pool-purge-delay 1h ${secure} ${isHttp2 ? (tls ? 'alpn h2' : 'proto h2') : ''}
`;
}
