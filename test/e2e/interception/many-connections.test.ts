/** Ten thousand connections to a captured host, all at once or a hundred at a time: what they cost is bounded, and nothing leaves without the right token. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLIENTS } from './programs.ts';
import { startWorld, type World } from './start-world.ts';
import { API, BODY } from './surroundings.ts';

const MAX_HANDSHAKES = 256;

const MANY = 10_000;
/** Each well under the time that a client has in the world. */
const TURNS = 20;
/** Each connection is two handshakes' worth of work, on one core for all. */
const ALL_TURNS_MS = 600_000;
const AT_ONCE = 100;

/** Connections of the sidecar that are no handshake: its listeners, its upstream's, and those that are just being refused. */
const OTHER_DESCRIPTORS = 150;

/** With what Node and the certificates of a bundle take. */
const MAX_MEGABYTES = 200;

describe('in the mode hosts', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld('hosts');
  });
  afterAll(() => world.stop());

  const many = async (...args: readonly (string | number)[]): Promise<Record<string, number>> => {
    const program = join(CLIENTS, 'node/many.js');
    return JSON.parse(await world.client(process.execPath, [program, ...args.map(String)])) as Record<
      string,
      number
    >;
  };

  /** The sidecar's own memory. */
  async function megabytes(): Promise<number> {
    const status = await readFile(`/proc/${world.sidecar}/status`, 'utf8');
    return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
  }

  /** The most descriptors that the sidecar had open while this went on. */
  async function mostDescriptors(during: Promise<unknown>): Promise<number> {
    let isOver = false;
    void during.finally(() => {
      isOver = true;
    });
    let most = 0;
    while (!isOver) most = Math.max(most, (await readdir(`/proc/${world.sidecar}/fd`)).length);
    return most;
  }

  it('that begin a handshake and stop are ended but for so many, and an app is served when those are gone', async () => {
    const flood = many('flood', API, MANY, MAX_HANDSHAKES);
    const descriptors = await mostDescriptors(flood);
    expect((await flood)['ended']).toBeGreaterThanOrEqual(MANY - MAX_HANDSHAKES);
    expect(descriptors).toBeGreaterThan(MAX_HANDSHAKES);
    expect(descriptors).toBeLessThan(MAX_HANDSHAKES + OTHER_DESCRIPTORS);
    expect(await megabytes()).toBeLessThan(MAX_MEGABYTES);
    expect(await world.client('curl', ['--silent', '--show-error', '--fail', `https://${API}/after`])).toBe(
      BODY,
    );
  });

  it('that ask once each, a hundred at a time, are all answered, each with the token', {
    timeout: ALL_TURNS_MS,
  }, async () => {
    const before = world.arrived.length;
    for (let turn = 0; turn < TURNS; turn++) {
      expect(await many('churn', API, MANY / TURNS, AT_ONCE)).toEqual({ 200: MANY / TURNS });
    }
    const arrived = world.arrived.slice(before).filter(({ path }) => path.startsWith('/churn/'));
    expect(arrived).toHaveLength(MANY);
    expect(new Set(arrived.map(({ token }) => token))).toEqual(new Set(['ours']));
    expect(await megabytes()).toBeLessThan(MAX_MEGABYTES);
  });
});
