/** A gateway as a process of its own, run as the image runs it, in the memory that the chart gives it. */

import { once } from 'node:events';
import {
  createServer as createHttp1,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttp2, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { makeControlGroup, ON_VERSION_1, removeControlGroup } from '../../cluster/node/control-groups.ts';
import { callers, mountGateway, servers, WEB, WEB_ENTRY } from '../../gateway/running-gateway.ts';
import { RunningCommand } from '../../support/run-command.ts';
import { readShippedNode } from '../../support/shipped-node.ts';
import type { Target } from './attack.ts';

/** As in the chart's values. */
const MEMORY_BYTES = 512 * 2 ** 20;

const GROUP = '/token-sidecar-parties';

/** Run by `sh`, it ends up as Node with the shipped flags and these arguments: in the group, within its memory. */
const WITHIN = (flags: readonly string[]): string => {
  const [directory, limit] = ON_VERSION_1
    ? [`/sys/fs/cgroup/memory${GROUP}`, 'memory.limit_in_bytes']
    : [`/sys/fs/cgroup${GROUP}`, 'memory.max'];
  return [
    `echo ${MEMORY_BYTES} > ${directory}/${limit}`,
    `echo $$ > ${directory}/cgroup.procs`,
    // As container runtimes do.
    'ulimit -n $(ulimit -H -n)',
    `node=$1; shift; exec "$node" ${flags.join(' ')} "$@"`,
  ].join(' && ');
};

const OTHER = 'spiffe://cluster.local/ns/shop/sa/other';
const OTHER_ENTRY = { name: 'other', match: { spiffe: OTHER }, allowedRoutes: ['api'] };

/** What Netty, and so grpc-java, allows: 200 resets in 30 s, then the connection ends for everybody. */
const LIKE_NETTY = { streamResetBurst: 200, streamResetRate: 6 };

/** Of both versions of HTTP. */
type Answering = Pick<ServerResponse, 'on' | 'end'>;

function answer({ url }: Pick<IncomingMessage, 'url'>, response: Answering): void {
  response.on('error', () => {});
  if (url === '/api/') response.end('ok');
}

async function startUpstream(protocol: 'http1' | 'h2c'): Promise<number> {
  const server: Server | Http2Server =
    protocol === 'http1'
      ? createHttp1(answer)
      : createHttp2(LIKE_NETTY, (request, response) => answer(request, response as unknown as Answering));
  server.on('sessionError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Two callers may use it: the one that attacks, and the one that must not notice. */
export async function startGatewayInMemory(
  protocol: 'http1' | 'h2c',
): Promise<{ readonly attacker: Target; readonly other: Target; readonly gateway: RunningCommand }> {
  const upstream = `http://127.0.0.1:${await startUpstream(protocol)}`;
  const routes = [{ name: 'api', match: { pathPrefix: '/api/' }, upstream, protocol }];
  const { path } = await mountGateway({ callers: [WEB_ENTRY, OTHER_ENTRY], file: { routes } }, upstream);
  makeControlGroup(GROUP);
  onTestFinished(() => removeControlGroup(GROUP));
  const { flags, env } = await readShippedNode();
  const gateway = new RunningCommand(['gateway', '--config', path], env, ['sh', '-c', WITHIN(flags), 'sh']);
  const [, port] = await gateway.output(/"proxy":"127\.0\.0\.1:(\d+)".*"msg":"ready"/s);
  const target = (caller: { readonly cert: string; readonly key: string }): Target => ({
    port: Number(port),
    ca: servers.cert,
    cert: caller.cert,
    key: caller.key,
  });
  return {
    attacker: target(callers.issue('web', WEB)),
    other: target(callers.issue('other', OTHER)),
    gateway,
  };
}
