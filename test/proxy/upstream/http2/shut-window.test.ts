import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { carried, connect, FIELDS, SETTINGS, WINDOW } from './bare-connection.ts';

/** As much as an upstream takes that has granted nothing (RFC 9113 §6.9.2). */
const WHOLE_WINDOW = Buffer.alloc(65_535);

/** A connection whose window one upload has filled; the stream has room for more. */
async function startShut() {
  const all = connect();
  const { connection, bring } = all;
  bring(SETTINGS);
  const upload = carried();
  connection.lend(upload.stream);
  const wire = connection.outlet.request(upload.stream, FIELDS, 'ordinary', false);
  if (wire === undefined) throw new Error('no stream was to be had');
  for (let sent = 0; sent < WHOLE_WINDOW.length; ) {
    sent += connection.outlet.send(wire, WHOLE_WINDOW.subarray(sent), false);
  }
  connection.outlet.wait(upload.stream);
  connection.outlet.flushSoon();
  await turn();
  return { ...all, upload };
}

it('a connection whose window lets nothing leave is waited for for two seconds, and then lent to nobody', async () => {
  const { connection, clock, free } = await startShut();
  await clock.advance(1_900);
  expect(connection.free).toBeGreaterThan(0);
  free();

  await clock.advance(200);

  expect([connection.free, connection.freeSoon, free()]).toEqual([0, 0, [0]]);
});

it('it is lent again once the window has grown, and waited for anew when that is used up', async () => {
  const { connection, clock, bring, free, told } = await startShut();
  await clock.advance(30_000);
  free();

  bring(WINDOW);

  expect(free().at(-1)).toBeGreaterThan(0);
  await clock.advance(1_000);
  expect(connection.free).toBeGreaterThan(0);
  expect(told).toEqual([]);
});

it('it is lent again once nothing waits for the window any more', async () => {
  const { connection, clock, upload } = await startShut();
  await clock.advance(3_000);
  expect(connection.free).toBe(0);

  connection.release(upload.stream);

  expect(connection.free).toBeGreaterThan(0);
});

it('that nothing waits for is not looked at any more, on a connection that ends as well', async () => {
  const { connection, clock, upload } = await startShut();
  const lasting = carried();
  connection.lend(lasting.stream);
  connection.retire();
  connection.release(upload.stream);

  await clock.advance(300_000);

  expect(clock.pendingTimers).toBe(0);
});
