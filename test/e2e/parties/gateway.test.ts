/**
 * One caller of a gateway does what it may, all the time; another's requests are answered as if it were not there. A cell of
 * each row in `npm run test:e2e`, all of them in `npm run test:all`.
 */

import { expect, it } from 'vitest';
import { volume } from '../../support/volume.ts';
import { type ATTACKS, REQUESTS_PER_SECOND, type Target } from './attack.ts';
import { type Asked, REQUESTS, type Version } from './bystander.ts';
import { type Cell, startGatewayInMemory } from './gateway-in-memory.ts';
import { builtProgram } from './in-memory.ts';
import { measuredAgain, measuredAlone, runIn } from './placed.ts';
import type { Spoken } from './upstream.ts';

/** The first version, of the one that is measured, and the first upstream are the cell that is representative. */
interface Row extends Omit<Cell, 'upstream'> {
  readonly versions: readonly Version[];
  readonly upstreams: readonly Spoken[];
  /** Before which upstreams 99 of 100 answers may take longer than is unnoticed, and how long, in ms. */
  readonly atMostMs?: Partial<Readonly<Record<Spoken, number>>>;
}

/** As long as three handshakes take the gateway's one thread; an answer takes 2 to 4 ms. */
const UNNOTICED_MS = 15;

const VERSIONS: readonly Version[] = ['http/1.1', 'h2'];
const BY_HTTP2: readonly Version[] = ['h2', 'http/1.1'];
const EVERY: readonly Spoken[] = ['http1', 'https1', 'h2c', 'h2'];
const SHARED: readonly Spoken[] = ['h2c', 'h2', 'http1', 'https1'];

const ROWS: Readonly<Record<keyof typeof ATTACKS, Row>> = {
  endlessBlocks: { versions: BY_HTTP2, upstreams: ['h2', 'http1'] },
  endlessHeads: { versions: VERSIONS, upstreams: ['https1', 'h2c'] },
  idleConnections: { versions: VERSIONS, upstreams: ['http1', 'h2'] },
  newConnections: { versions: BY_HTTP2, upstreams: ['http1', 'h2'] },
  strangers: { versions: VERSIONS, upstreams: ['h2', 'http1'] },
  neighbours: { versions: BY_HTTP2, upstreams: ['http1', 'h2'] },
  requestFlood: {
    versions: VERSIONS,
    upstreams: EVERY,
    limits: { requestsPerSecond: REQUESTS_PER_SECOND },
  },
  // Over HTTP/1.1 what is cancelled costs a connection to the upstream, and downloads take turns at that thread: those that
  // it may cancel at once are noticed.
  cancelledRequests: { versions: VERSIONS, upstreams: SHARED, atMostMs: { http1: 250, https1: 250 } },
  cancelledDownloads: { versions: BY_HTTP2, upstreams: SHARED, atMostMs: { http1: 500, https1: 500 } },
  // Of an upstream that refuses nothing: then it is the gateway that has to.
  unreadDownloads: { versions: VERSIONS, upstreams: ['h2', 'h2c', 'http1', 'https1'], memoryMb: 1000 },
  unreadWhileCancelling: { versions: VERSIONS, upstreams: ['h2c', 'h2'], memoryMb: 1000 },
  unreadUploads: { versions: BY_HTTP2, upstreams: EVERY },
};

const CELLS = Object.entries(ROWS).flatMap(([attack, { versions, upstreams, ...row }]) =>
  versions
    .flatMap((version) => upstreams.map((upstream) => ({ attack, version, upstream, ...row })))
    .slice(0, volume(1, Number.POSITIVE_INFINITY)),
);

async function asked(version: Version, target: Target): Promise<Asked> {
  const { line } = await runIn('bystander', 'bystander.ts', [version, JSON.stringify(target)]);
  return JSON.parse(line) as Asked;
}

measuredAlone();
const built = builtProgram();

it.each(CELLS)(
  '$attack of one caller, while another asks by $version for what an upstream of $upstream has',
  async ({ attack, version, atMostMs, ...cell }) => {
    const { attacker, bystander, gateway } = await startGatewayInMemory(cell, built());
    const quiet = await asked(version, bystander);
    await runIn('attacker', 'attack.ts', [attack, JSON.stringify(attacker)]);
    const limitMs = Math.max(3 * quiet.p99Ms, atMostMs?.[cell.upstream] ?? UNNOTICED_MS);
    const attacked = await measuredAgain(limitMs, () => asked(version, bystander));
    expect([gateway.process.exitCode, gateway.process.signalCode]).toEqual([null, null]);
    for (const { statuses } of attacked.all) expect(statuses).toEqual({ 200: REQUESTS });
    expect(attacked.p99Ms).toBeLessThan(limitMs);
  },
);
