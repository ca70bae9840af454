import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram, requireProgram } from '../programs.ts';
import { SERVER_NAME } from '../upstream.ts';
import type { ProxyKind, ProxySetup } from './proxy.ts';

export const caddy: ProxyKind = {
  name: 'caddy',
  token: 'static',
  protocols: ['http1'],
  version: async () => (await findProgram('caddy'))?.version,
  async prepare(setup) {
    const file = join(setup.directory, 'caddy.json');
    await writeFile(file, JSON.stringify(configuration(setup)));
    const { path } = await requireProgram('caddy');
    const home = { HOME: setup.directory, XDG_DATA_HOME: setup.directory, XDG_CONFIG_HOME: setup.directory };
    return { command: path, args: ['run', '--config', file], env: home };
  },
};

function configuration({ port, upstreamPort, tls, caFile, token }: ProxySetup): unknown {
  const secure = { root_ca_pem_files: [caFile], server_name: SERVER_NAME };
  const proxy = {
    handler: 'reverse_proxy',
    upstreams: [{ dial: `127.0.0.1:${upstreamPort}` }],
    headers: { request: { set: { Authorization: [`Bearer ${token}`] } } },
    transport: {
      protocol: 'http',
      keep_alive: { max_idle_conns_per_host: 256, idle_timeout: '1h' },
      compression: false,
      ...(tls ? { tls: secure } : {}),
    },
  };
  return {
    admin: { disabled: true, config: { persist: false } },
    logging: { logs: { default: { level: 'ERROR' } } },
    apps: {
      http: {
        servers: {
          app: {
            listen: [`127.0.0.1:${port}`],
            automatic_https: { disable: true },
            routes: [{ handle: [proxy] }],
          },
        },
      },
    },
  };
}
