/**
 * The upstream of every proxy: nginx that answers from memory and checks nothing, which costs it a fraction of what
 * passing the request on costs a proxy.
 */

import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCertificateAuthority } from '../test/support/certificate-authority.ts';
import type { Cores } from './cores.ts';
import { freePort, whenListening } from './free-port.ts';
import { startPinned } from './pinned-process.ts';
import { requireProgram } from './programs.ts';

/** The name in the upstream's certificate, which every proxy verifies. */
export const SERVER_NAME = 'upstream.test';

export const STREAM_BYTES = 1024 ** 3;

export interface Upstream {
  readonly plainPort: number;
  readonly tlsPort: number;
  /** PEM file of the authority of its certificate. */
  readonly caFile: string;
  close(): Promise<void>;
}

export async function startUpstream(directory: string, cores: Cores): Promise<Upstream> {
  const nginx = await requireProgram('nginx');
  const [plainPort, tlsPort] = [await freePort(), await freePort()];
  const answers = join(directory, 'answers');
  await mkdir(answers);
  await writeFile(join(answers, '10kb'), 'x'.repeat(10 * 1024));
  await writeFile(join(answers, '1mb'), 'x'.repeat(1024 ** 2));
  await writeFile(join(answers, 'upload'), '');
  // Sparse: it takes no room on the disk.
  await writeFile(join(answers, '1gb'), '');
  await truncate(join(answers, '1gb'), STREAM_BYTES);

  const authority = createCertificateAuthority('benchmark');
  const { cert, key } = authority.issue(SERVER_NAME, SERVER_NAME, '127.0.0.1');
  const caFile = join(directory, 'ca.pem');
  await writeFile(caFile, authority.cert);
  await writeFile(join(directory, 'upstream.pem'), cert);
  await writeFile(join(directory, 'upstream.key'), key, { mode: 0o600 });

  const file = join(directory, 'upstream.conf');
  await writeFile(file, configuration({ directory, answers, plainPort, tlsPort, workers: cores.loadCount }));
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
    await whenListening(tlsPort, () => (hasEnded ? `the upstream ended: ${child.errorOutput()}` : undefined));
  } catch (error) {
    await child.stop();
    throw error;
  }
  return { plainPort, tlsPort, caFile, close: () => child.stop() };
}

interface Settings {
  readonly directory: string;
  readonly answers: string;
  readonly plainPort: number;
  readonly tlsPort: number;
  readonly workers: number;
}

/**
 * Connections are kept for good, files stay open. One cipher for all, because BoringSSL and Go would choose AES-128
 * where OpenSSL chooses AES-256. An upload is answered once it has arrived: `mirror` makes nginx read it, the refusal of POST for
 * a file then leads to the answer.
 */
function configuration({ directory, answers, plainPort, tlsPort, workers }: Settings): string {
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
  sendfile on;
  tcp_nopush on;
  server {
    listen 127.0.0.1:${plainPort} backlog=4096;
    listen 127.0.0.1:${tlsPort} ssl backlog=4096;
    ssl_certificate ${directory}/upstream.pem;
    ssl_certificate_key ${directory}/upstream.key;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    root ${answers};
    location = /100b { return 200 "${'x'.repeat(100)}"; }
    location = /authorization { return 200 "$http_authorization"; }
    location = /upload { mirror /uploaded; error_page 405 =200 @received; }
    location = /uploaded { internal; return 204; }
    location @received { return 200 "received"; }
  }
}
`;
}
