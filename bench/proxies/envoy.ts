import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, requireProgram } from '../programs.ts';
import { CLIENT_ID, CLIENT_SECRET } from '../token-endpoint.ts';
import { SERVER_NAME } from '../upstream.ts';
import type { ProxyKind, ProxySetup } from './proxy.ts';

/** Envoy with its own client credentials grant, the filter that does what the sidecar does. */
export const envoy: ProxyKind = {
  name: 'envoy',
  token: 'obtained',
  protocols: ['http1', 'http2'],
  version: async () => (await findProgram('envoy'))?.version,
  async prepare(setup) {
    const file = join(setup.directory, 'envoy.json');
    await writeFile(file, JSON.stringify(configuration(setup)));
    const { path } = await requireProgram('envoy');
    // Hot restart would claim shared memory under a name that two instances would share.
    const args = ['-c', file, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'error'];
    return { command: path, args };
  },
};

const TYPE = 'type.googleapis.com/envoy.extensions';

function configuration({ port, upstreamPort, tls, protocol, caFile, tokenUrl }: ProxySetup): unknown {
  const injector = {
    '@type': `${TYPE}.filters.http.credential_injector.v3.CredentialInjector`,
    overwrite: true,
    credential: {
      name: 'envoy.http.injected_credentials.oauth2',
      typed_config: {
        '@type': `${TYPE}.http.injected_credentials.oauth2.v3.OAuth2`,
        token_endpoint: {
          cluster: 'token',
          timeout: '3s',
          uri: `http://127.0.0.1:${tokenUrl.port}${tokenUrl.path}`,
        },
        client_credentials: { client_id: CLIENT_ID, client_secret: { name: 'client-secret' } },
      },
    },
  };
  const connectionManager = {
    '@type': `${TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'app',
    generate_request_id: false,
    route_config: {
      virtual_hosts: [
        {
          name: 'api',
          domains: ['*'],
          routes: [{ match: { prefix: '/' }, route: { cluster: 'api', timeout: '0s' } }],
        },
      ],
    },
    http_filters: [
      { name: 'envoy.filters.http.credential_injector', typed_config: injector },
      {
        name: 'envoy.filters.http.router',
        typed_config: { '@type': `${TYPE}.filters.http.router.v3.Router` },
      },
    ],
  };
  const secure = {
    name: 'envoy.transport_sockets.tls',
    typed_config: {
      '@type': `${TYPE}.transport_sockets.tls.v3.UpstreamTlsContext`,
      sni: SERVER_NAME,
      common_tls_context: {
        ...(protocol === 'http2' ? { alpn_protocols: ['h2'] } : {}),
        tls_params: { tls_maximum_protocol_version: 'TLSv1_3' },
        validation_context: {
          trusted_ca: { filename: caFile },
          match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: SERVER_NAME } }],
        },
      },
    },
  };
  const api = cluster('api', upstreamPort, tls ? secure : undefined);
  return {
    static_resources: {
      secrets: [{ name: 'client-secret', generic_secret: { secret: { inline_string: CLIENT_SECRET } } }],
      listeners: [
        {
          name: 'app',
          address: socketAddress(port),
          filter_chains: [
            {
              filters: [
                { name: 'envoy.filters.network.http_connection_manager', typed_config: connectionManager },
              ],
            },
          ],
        },
      ],
      clusters: [protocol === 'http2' ? { ...api, ...HTTP2 } : api, cluster('token', tokenUrl.port)],
    },
  };
}

/** Of a cluster that is spoken to so; whether the app does its connection manager sees by itself. */
const HTTP2 = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': `${TYPE}.upstreams.http.v3.HttpProtocolOptions`,
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

function cluster(name: string, port: number, transportSocket?: unknown): object {
  return {
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: socketAddress(port) } }] }],
    },
    ...(transportSocket === undefined ? {} : { transport_socket: transportSocket }),
  };
}

function socketAddress(port: number): unknown {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
