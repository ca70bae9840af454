import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { DenseSet } from '../../../src/proxy/io/collections.ts';

class Guest {
  place = 0;
}

it('a dense set has exactly the members that were added and not deleted', () => {
  const guests = Array.from({ length: 8 }, () => new Guest());
  const step = fc.tuple(fc.constantFrom('add', 'delete', 'clear'), fc.nat({ max: 7 }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const [members, expected] = [new DenseSet<Guest>(), new Set<Guest>()];
      for (const [act, at] of steps) {
        const guest = guests[at] as Guest;
        if (act === 'add') {
          members.add(guest);
          expected.add(guest);
        } else if (act === 'delete') {
          expect(members.delete(guest)).toBe(expected.delete(guest));
        } else {
          members.clear();
          expected.clear();
        }
        expect(members.size).toBe(expected.size);
        expect(new Set(members)).toEqual(expected);
      }
      members.clear();
    }),
  );
});

it('a dense set skips members deleted during iteration and does not visit added ones', () => {
  const [first, second, third, late] = [new Guest(), new Guest(), new Guest(), new Guest()];
  const members = new DenseSet<Guest>();
  for (const guest of [first, second, third]) members.add(guest);
  const seen: Guest[] = [];
  for (const guest of members) {
    seen.push(guest);
    if (guest !== first) continue;
    members.delete(first);
    members.delete(second);
    members.add(late);
  }
  expect(seen).toEqual([first, third]);
  expect([...members].map((guest) => [third, late].includes(guest))).toEqual([true, true]);
});

/** How many octets one young collection after another moves to the old generation while members come and go. */
async function promotedBytes(collection: string, file: string): Promise<number> {
  const program = `
    import { ${collection} as Collection } from ${JSON.stringify(join(import.meta.dirname, '../../../src/proxy', file))};
    class Request {
      place = 0;
      heads = Array.from({ length: 50 }, (_, at) => ({ at }));
      constructor(id) { this.id = id; }
    }
    const all = new Collection();
    const inFlight = [];
    const come = (id) => { const request = new Request(id); inFlight.push(request); all.add(request); };
    const go = () => { const request = inFlight.shift(); all.delete(${collection === 'DenseSet' ? 'request' : 'request.id'}); };
    for (let id = 1; id < 64; id += 2) come(id);
    gc(); gc();
    for (let id = 65; id < 60_000; id += 2) { go(); come(id); }
  `;
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--expose-gc',
    '--max-semi-space-size=1',
    '--trace-gc',
    '--trace-gc-nvp',
    '--disable-warning=ExperimentalWarning',
    '--input-type=module',
    '--eval',
    program,
  ]);
  const promoted = [...stdout.matchAll(/"gc":"s".*?"promoted":(\d+)|gc=s .*? promoted=(\d+)/g)];
  expect(promoted.length).toBeGreaterThan(10);
  return promoted.reduce((sum, [, now, before]) => sum + Number(now ?? before), 0);
}

it.each([
  ['DenseSet', 'io/collections.ts'],
  ['OpenStreams', 'http2/streams.ts'],
])('%s does not keep deleted members alive across young collections', async (collection, file) => {
  // Of some 60 MB that come and go.
  expect(await promotedBytes(collection, file)).toBeLessThan(5e6);
});
