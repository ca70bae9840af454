import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, requireProgram } from '../programs.ts';
import { SERVER_NAME } from '../upstream.ts';
import type { ProxyKind, ProxySetup } from './proxy.ts';

/** nginx reads no parameter as long as 4096 bytes; a longer token is put together from variables. */
const PARAMETER_BYTES = 2048;

export const nginx: ProxyKind = {
  name: 'nginx',
  token: 'static',
  protocols: ['http1', 'http2'],
  version: async () => (await findProgram('nginx'))?.version,
  async prepare(setup) {
    const file = join(setup.directory, 'nginx.conf');
    await writeFile(file, configuration(setup));
    const { path } = await requireProgram('nginx');
    return { command: path, args: ['-c', file, '-p', setup.directory, '-e', 'stderr'] };
  },
};

/** Bodies are streamed, as the others do, and never go to a file. */
function configuration({ directory, port, upstreamPort, tls, protocol, caFile, token }: ProxySetup): string {
  const parts = token.match(new RegExp(`.{1,${PARAMETER_BYTES}}`, 'g')) ?? [];
  const isShort = parts.length === 1;
  const isHttp2 = protocol === 'http2';
  const directive = isHttp2 ? 'grpc' : 'proxy';
  return `
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes 1;
daemon off;
pid ${directory}/nginx.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  keepalive_requests 100000000;
  upstream api {
    server 127.0.0.1:${upstreamPort};
    keepalive 256;
    keepalive_requests 100000000;
    keepalive_timeout 1h;
  }
  server {
    listen 127.0.0.1:${port} backlog=4096${isHttp2 ? ' http2' : ''};
    client_max_body_size 0;
    location / {
      ${isShort ? '' : parts.map((part, index) => `set $token${index} "${part}";`).join('\n      ')}
      ${directive}_pass ${isHttp2 ? 'grpc' : 'http'}${tls ? 's' : ''}://api;
      ${isHttp2 ? '' : 'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; proxy_max_temp_file_size 0;'}
      ${directive}_set_header Authorization "Bearer ${isShort ? token : parts.map((_, index) => `$token${index}`).join('')}";
      ${tls ? `${directive}_ssl_verify on; ${directive}_ssl_trusted_certificate ${caFile}; ${directive}_ssl_name ${SERVER_NAME}; ${directive}_ssl_server_name on; ${directive}_ssl_protocols TLSv1.3;` : ''}
    }
  }
}
`;
}
