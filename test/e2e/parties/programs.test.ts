/** One caller of the injector, the broker or the issuer does what it may, all the time; another is answered as if it were not there. */

import { expect, it } from 'vitest';
import type { Asked, Kind } from './caller.ts';
import type { ATTACKS, Target } from './caller-attack.ts';
import { builtProgram } from './in-memory.ts';
import { measuredAgain, measuredAlone, runIn } from './placed.ts';
import { type Program, startInMemory } from './program-in-memory.ts';

const REQUESTS = 300;
const QUIET_REQUESTS = 100;
/** Attackers have little more than one processor here: then no answer is quicker than its turn. */
const NOTICEABLE_MS = 1000;

async function asked(target: Target, kind: Kind, requests: number): Promise<Asked> {
  const { line } = await runIn('bystander', 'caller.ts', [kind, String(requests)], JSON.stringify(target));
  return JSON.parse(line) as Asked;
}

/** Each with what it would spoil. */
const ROWS: readonly (readonly [Program, keyof typeof ATTACKS, Kind])[] = [
  // Memory, by what is kept of who does not read.
  ['broker', 'unreadAnswers', 'kept'],
  // Memory, and room for connections.
  ['injector', 'unfinishedBodies', 'kept'],
  ['issuer', 'unfinishedBodies', 'fresh'],
  // Memory, by what is kept of each piece of a body.
  ['injector', 'bodiesByOctet', 'kept'],
  ['broker', 'bodiesByOctet', 'kept'],
  ['issuer', 'bodiesByOctet', 'fresh'],
  // Memory, by what is kept of who does not read, and by what a review takes.
  ['issuer', 'unreadAnswers', 'fresh'],
  ['injector', 'costlyRequests', 'kept'],
  // Verification of signatures, and questions to the API server.
  ['broker', 'costlyRequests', 'kept'],
  // Processors and threads, by slow hashes.
  ['issuer', 'costlyRequests', 'fresh'],
  // Room for connections, and memory.
  ['injector', 'unfinishedHeads', 'kept'],
  ['broker', 'unfinishedHeads', 'fresh'],
  ['issuer', 'unfinishedHeads', 'fresh'],
  // The queue of connections to be accepted, and handshakes.
  ['injector', 'leftConnections', 'fresh'],
  ['broker', 'leftConnections', 'fresh'],
  ['issuer', 'leftConnections', 'fresh'],
  // The same queue, behind long turns of the event loop.
  ['injector', 'fullRate', 'fresh'],
  ['broker', 'fullRate', 'fresh'],
  ['issuer', 'fullRate', 'fresh'],
];

measuredAlone();
const built = builtProgram();

it.each(ROWS)(
  '%s: %s of one address, beside a caller with connections that are %s',
  async (program, name, kind) => {
    const { attacker, other, running } = await startInMemory(program, built());
    const quiet = await asked(other, kind, QUIET_REQUESTS);
    await runIn('attacker', 'caller-attack.ts', [name], JSON.stringify(attacker));
    const limitMs = Math.max(3 * quiet.p99Ms, NOTICEABLE_MS);
    const attacked = await measuredAgain(limitMs, () => asked(other, kind, REQUESTS));
    expect(running.process.signalCode ?? running.process.exitCode).toBeNull();
    for (const { outcomes } of attacked.all) expect(Object.keys(outcomes)).toEqual(['200']);
    expect(attacked.p99Ms).toBeLessThan(limitMs);
  },
);
