import { findProgram, requireProgram } from '../programs.ts';
import { SERVER_NAME } from '../upstream.ts';
import type { ProxyKind } from './proxy.ts';

/** nghttp2's own proxy, whose library is the yardstick of HTTP/2. */
export const nghttpx: ProxyKind = {
  name: 'nghttpx',
  token: 'static',
  protocols: ['http2'],
  version: async () => (await findProgram('nghttpx'))?.version,
  async prepare({ port, upstreamPort, tls, caFile, token }) {
    const { path } = await requireProgram('nghttpx');
    const args = [
      // Nothing of the system's.
      '--conf=/dev/null',
      '--workers=1',
      '--single-process',
      `--frontend=127.0.0.1,${port};no-tls`,
      `--backend=127.0.0.1,${upstreamPort};;proto=h2${tls ? `;tls;sni=${SERVER_NAME}` : ''}`,
      ...(tls ? [`--cacert=${caFile}`, '--tls13-client-ciphers=TLS_AES_128_GCM_SHA256'] : []),
      `--add-request-header=authorization: Bearer ${token}`,
      '--accesslog-file=/dev/null',
      '--errorlog-file=/dev/null',
    ];
    return { command: path, args };
  },
};
