/**
 * The upstream of every proxy: nginx that answers from memory and checks nothing, which costs it a fraction of what
 * passing the request on costs a proxy.
 */

import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCertificateAuthority } from '../test/support/certificate-authority.ts';
import { CALLS, type Call, type Cell, protocolOf } from './cells.ts';
import type { Cores } from './cores.ts';
import { freePort, whenListening } from './free-port.ts';
import { grpcMessages } from './grpc-messages.ts';
import { startPinned } from './pinned-process.ts';
import { requireProgram } from './programs.ts';

/** The name in the upstream's certificate, which every proxy verifies. */
export const SERVER_NAME = 'upstream.test';

export const STREAM_BYTES = 1024 ** 3;

export interface Upstream {
  /** Of HTTP/1.1, without TLS. */
  readonly plainPort: number;
  /** Where it speaks as the cell says. */
  portFor(cell: Pick<Cell, 'protocol' | 'upstream'>): number;
  /** The message that each request of the call sends, as gRPC frames it. */
  messageFile(call: Call): string;
  /** PEM file of the authority of its certificate. */
  readonly caFile: string;
  close(): Promise<void>;
}

export async function startUpstream(directory: string, cores: Cores): Promise<Upstream> {
  const nginx = await requireProgram('nginx');
  const ports: Ports = {
    http1: { plain: await freePort(), tls: await freePort() },
    http2: { plain: await freePort(), tls: await freePort() },
  };
  const answers = join(directory, 'answers');
  await mkdir(answers);
  await writeFile(join(answers, '10kb'), 'x'.repeat(10 * 1024));
  await writeFile(join(answers, '1mb'), 'x'.repeat(1024 ** 2));
  await writeFile(join(answers, 'upload'), '');
  // Sparse: it takes no room on the disk.
  await writeFile(join(answers, '1gb'), '');
  await truncate(join(answers, '1gb'), STREAM_BYTES);

  const messages = join(directory, 'messages');
  await mkdir(messages);
  await mkdir(join(answers, 'grpc'));
  for (const [call, { path, messageBytes, replies }] of Object.entries(CALLS)) {
    await writeFile(join(messages, call), grpcMessages(messageBytes, 1));
    await writeFile(join(answers, path), grpcMessages(messageBytes, replies));
  }

  const authority = createCertificateAuthority('benchmark');
  const { cert, key } = authority.issue(SERVER_NAME, SERVER_NAME, '127.0.0.1');
  const caFile = join(directory, 'ca.pem');
  await writeFile(caFile, authority.cert);
  await writeFile(join(directory, 'upstream.pem'), cert);
  await writeFile(join(directory, 'upstream.key'), key, { mode: 0o600 });

  const file = join(directory, 'upstream.conf');
  await writeFile(file, configuration({ directory, answers, ports, workers: cores.loadCount }));
  const child = startPinned({
    command: nginx.path,
    args: ['-c', file, '-p', directory, '-e', 'stderr'],
    cores: cores.load,
  });
  let hasEnded = false;
  void child.exited.then(() => {
    hasEnded = true;
  });
  try {
    await whenListening(ports.http2.tls, () =>
      hasEnded ? `the upstream ended: ${child.errorOutput()}` : undefined,
    );
  } catch (error) {
    await child.stop();
    throw error;
  }
  return {
    plainPort: ports.http1.plain,
    portFor: (cell) => ports[protocolOf(cell)][cell.upstream],
    messageFile: (call) => join(messages, call),
    caFile,
    close: () => child.stop(),
  };
}

type Ports = Readonly<Record<'http1' | 'http2', Readonly<Record<Cell['upstream'], number>>>>;

interface Settings {
  readonly directory: string;
  readonly answers: string;
  readonly ports: Ports;
  readonly workers: number;
}

/**
 * Connections are kept for good, files stay open. One cipher for all, because BoringSSL and Go would choose AES-128
 * where OpenSSL chooses AES-256. An upload is answered once it has arrived: `mirror` makes nginx read it, the refusal of POST for
 * a file then leads to the answer. gRPC's calls are answered the same way, the messages of a stream in a DATA frame each.
 */
function configuration({ directory, answers, ports, workers }: Settings): string {
  const listeners = [
    `${ports.http1.plain}`,
    `${ports.http1.tls} ssl`,
    `${ports.http2.plain} http2`,
    `${ports.http2.tls} ssl http2`,
  ];
  return `
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes ${workers};
daemon off;
pid ${directory}/upstream.pid;
error_log stderr error;
events { worker_connections 8192; multi_accept on; }
http {
  access_log off;
  client_body_temp_path ${directory}/upstream-body;
  proxy_temp_path ${directory}/upstream-proxy;
  fastcgi_temp_path ${directory}/upstream-fastcgi;
  uwsgi_temp_path ${directory}/upstream-uwsgi;
  scgi_temp_path ${directory}/upstream-scgi;
  default_type application/octet-stream;
  keepalive_requests 100000000;
  keepalive_timeout 1h;
  large_client_header_buffers 8 16k;
  client_body_buffer_size 128k;
  client_max_body_size 0;
  open_file_cache max=16 inactive=1h;
  open_file_cache_valid 1h;
  http2_max_concurrent_streams 1024;
  sendfile on;
  tcp_nopush on;
  server {
    ${listeners.map((listener) => `listen 127.0.0.1:${listener} backlog=4096;`).join('\n    ')}
    ssl_certificate ${directory}/upstream.pem;
    ssl_certificate_key ${directory}/upstream.key;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    root ${answers};
    location = /100b { return 200 "${'x'.repeat(100)}"; }
    location = /authorization { return 200 "$http_authorization"; }
    location = /upload { mirror /uploaded; error_page 405 =200 @received; }
    location = /uploaded { internal; return 204; }
    location /grpc/ {
      types { }
      default_type application/grpc;
      mirror /uploaded;
      error_page 405 =200 $uri;
      add_trailer grpc-status 0;
      location = ${CALLS.stream.path} { http2_chunk_size ${5 + CALLS.stream.messageBytes}; }
    }
    location @received { return 200 "received"; }
  }
}
`;
}
