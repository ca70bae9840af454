import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { carried, connect, FIELDS, SETTINGS } from './bare-connection.ts';

/** More than a socket takes in before it asks for a pause. */
const BIG = Buffer.alloc(60_000);

/** A connection on which part of an upload has left, and the rest waits in the socket. */
async function startStuck() {
  const all = connect();
  const { connection, socket, bring } = all;
  bring(SETTINGS);
  const upload = carried();
  connection.lend(upload.stream);
  const wire = connection.outlet.request(upload.stream, FIELDS, 'ordinary', false);
  if (wire === undefined) throw new Error('no stream was to be had');
  await turn();
  socket.stuck = true;
  connection.outlet.send(wire, BIG, false);
  connection.outlet.flushSoon();
  await turn();
  return { ...all, upload, wire };
}

it('an HTTP/2 upstream connection whose socket takes nothing for two seconds is not lent', async () => {
  const { connection, clock } = await startStuck();
  expect([connection.free, connection.freeSoon > 0]).toEqual([0, true]);
  await clock.advance(1_900);
  expect(connection.freeSoon).toBeGreaterThan(0);

  await clock.advance(200);

  expect([connection.free, connection.freeSoon]).toEqual([0, 0]);
});

it('an HTTP/2 upstream connection is lent again once its socket took what waited', async () => {
  const { connection, clock, socket, told } = await startStuck();
  await clock.advance(5_000);

  socket.unblock();
  await turn();

  expect(connection.free).toBeGreaterThan(0);
  await clock.advance(20_000);
  expect(told).toEqual([]);
});

it('an HTTP/2 upstream connection whose socket takes nothing for ten seconds fails with its requests', async () => {
  const { connection, clock, socket, told, upload } = await startStuck();
  await clock.advance(9_000);
  expect(told).toEqual([]);

  await clock.advance(3_100);

  expect([told, upload.failures, socket.destroyed]).toEqual([['gone'], [], false]);
  socket.unblock();
  await turn();
  expect([connection.free, connection.freeSoon]).toEqual([0, 0]);
  connection.release(upload.stream);
  expect(told).toEqual(['gone', 'closed']);
});

it('an HTTP/2 upstream connection whose socket takes a little now and then is kept', async () => {
  const { clock, socket, told, connection, wire } = await startStuck();
  for (let round = 0; round < 4; round++) {
    await clock.advance(6_000);
    socket.unblock();
    await turn();
    socket.stuck = true;
    connection.outlet.send(wire, BIG.subarray(0, 1_000), false);
    connection.outlet.flushSoon();
    await turn();
  }
  expect(told).toEqual([]);
});

it('PING waiting behind an upload has two seconds from when it was sent', async () => {
  const { connection, clock, socket, told, upload } = await startStuck();
  socket.unblock();
  await turn();
  await clock.advance(11_000);
  socket.stuck = true;
  connection.prepare(1_000, clock.now());
  await turn();
  expect(socket.writableLength).toBeGreaterThan(0);

  await clock.advance(5_000);
  expect([upload.failures, socket.destroyed]).toEqual([[], false]);

  socket.unblock();
  await clock.advance(4_100);
  expect(upload.failures).toEqual([[expect.objectContaining({ code: 'upstream_timeout' }), true]]);
  expect(told).toEqual(['gone', 'closed']);
});
