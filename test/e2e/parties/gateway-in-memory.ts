/** A gateway as a process of its own, run as the image runs it, in the memory that the chart gives it. */

import {
  type CallerEntry,
  callers,
  mountGateway,
  servers,
  WEB,
  WEB_ENTRY,
} from '../../gateway/running-gateway.ts';
import { RunningCommand } from '../../support/run-command.ts';
import { readShippedNode } from '../../support/shipped-node.ts';
import { selfSigned } from '../../wire/certificate.ts';
import { temporaryFile } from '../../wire/temporary-file.ts';
import type { Target } from './attack.ts';
import { withinMemory } from './in-memory.ts';
import { placeOf, runIn } from './placed.ts';
import type { Spoken } from './upstream.ts';

/** As in the chart's values. */
const MEMORY_BYTES = 512 * 2 ** 20;

const OTHER = 'spiffe://cluster.local/ns/shop/sa/other';
const OTHER_ENTRY = { name: 'other', match: { spiffe: OTHER }, allowedRoutes: ['api'] };

const certificate = selfSigned('127.0.0.1');

async function startUpstream({ upstream: spoken, memoryMb = 10 }: Cell): Promise<Record<string, unknown>> {
  const caFile = await temporaryFile('upstream.crt', certificate.cert);
  const key = await temporaryFile('upstream.key', certificate.key);
  const { line } = await runIn('bystander', 'upstream.ts', [spoken, String(memoryMb), caFile, key]);
  const address = `127.0.0.1:${line.trim()}`;
  switch (spoken) {
    case 'http1':
    case 'h2c':
      return { upstream: `http://${address}`, protocol: spoken };
    case 'https1':
      return { upstream: `https://${address}`, protocol: 'http1', tls: { caFile } };
    case 'h2':
      return { upstream: `https://${address}`, protocol: 'h2', tls: { caFile } };
  }
}

export interface Cell {
  readonly upstream: Spoken;
  /** Of one connection of the upstream; as Node has it unless it is said. */
  readonly memoryMb?: number;
  /** Of the entry of the one that attacks. */
  readonly limits?: CallerEntry['limits'];
}

export interface Parties {
  readonly attacker: Target;
  readonly bystander: Target;
  readonly gateway: RunningCommand;
}

/**
 * Two callers may use it: the one that attacks, and the one that must not notice.
 * @param main the built program.
 */
export async function startGatewayInMemory(cell: Cell, main: string): Promise<Parties> {
  const route = await startUpstream(cell);
  const entry = cell.limits === undefined ? WEB_ENTRY : { ...WEB_ENTRY, limits: cell.limits };
  const routes = [{ name: 'api', match: { pathPrefix: '/api/' }, ...route }];
  const { path } = await mountGateway(
    { callers: [entry, OTHER_ENTRY], file: { routes, accessLog: 'off' } },
    '',
  );
  const { flags, env } = await readShippedNode();
  const through = [...placeOf('program'), ...withinMemory(MEMORY_BYTES, flags)];
  const gateway = new RunningCommand(['gateway', '--config', path], env, through, main);
  const [, port] = await gateway.output(/"proxy":"127\.0\.0\.1:(\d+)".*"msg":"ready"/s);
  const target = (caller: { readonly cert: string; readonly key: string }): Target => ({
    port: Number(port),
    ca: servers.cert,
    cert: caller.cert,
    key: caller.key,
  });
  return {
    attacker: target(callers.issue('web', WEB)),
    bystander: target(callers.issue('other', OTHER)),
    gateway,
  };
}
