import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { MAX_STREAMS } from '../../../../src/proxy/upstream/http2/connection.ts';
import { Liveness } from '../../../../src/proxy/upstream/http2/liveness.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { carried, connect, FIELDS, SETTINGS, WINDOW } from './bare-connection.ts';

/** Of a connection with this socket, whose window is open. */
function livenessOf(socket = { writableLength: 0, bytesWritten: 0 }, clock = new ManualClock()): Liveness {
  return new Liveness(socket, { takesMore: true, windowExhausted: false }, clock, clock.now());
}

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

/** Of Netty, in 30 s. */
const ALLOWED = 200;

describe('the time in which a socket takes nothing', () => {
  it('runs from when waiting bytes were first seen', () => {
    const socket = { writableLength: 0, bytesWritten: 100 };
    const stuck = livenessOf(socket);
    expect([stuck.stuckMs(1_000), stuck.watches]).toEqual([0, false]);
    socket.bytesWritten = socket.writableLength = 200;
    expect([stuck.stuckMs(2_000), stuck.stuckMs(2_700), stuck.watches]).toEqual([0, 700, true]);
  });

  it('starts anew once some bytes were taken, whatever waits then', () => {
    const socket = { writableLength: 500, bytesWritten: 500 };
    const stuck = livenessOf(socket);
    stuck.stuckMs(0);
    socket.writableLength = 900;
    socket.bytesWritten = 1_000;
    expect([stuck.stuckMs(5_000), stuck.stuckMs(6_000)]).toEqual([0, 1_000]);
  });

  it('is not affected by more bytes being queued', () => {
    const socket = { writableLength: 500, bytesWritten: 500 };
    const stuck = livenessOf(socket);
    stuck.stuckMs(0);
    socket.writableLength += 100;
    socket.bytesWritten += 100;
    expect(stuck.stuckMs(5_000)).toBe(5_000);
  });

  it('does not run when nothing waits', () => {
    const socket = { writableLength: 500, bytesWritten: 500 };
    const stuck = livenessOf(socket);
    stuck.stuckMs(0);
    socket.writableLength = 0;
    expect([stuck.stuckMs(20_000), stuck.watches]).toEqual([0, false]);
  });
});

describe('an HTTP/2 upstream connection with an exhausted window', () => {
  it('is not lent after two seconds', async () => {
    const { connection, clock, free } = await startShut();
    await clock.advance(1_900);
    expect(connection.free).toBeGreaterThan(0);
    free();

    await clock.advance(200);

    expect([connection.free, connection.freeSoon, free()]).toEqual([0, 0, [0]]);
  });

  it('is lent again once the window has grown, and timed anew when that is used up', async () => {
    const { connection, clock, bring, free, told } = await startShut();
    await clock.advance(30_000);
    free();

    bring(WINDOW);

    expect(free().at(-1)).toBeGreaterThan(0);
    await clock.advance(1_000);
    expect(connection.free).toBeGreaterThan(0);
    expect(told).toEqual([]);
  });

  it('is lent again once nothing waits for the window', async () => {
    const { connection, clock, upload } = await startShut();
    await clock.advance(3_000);
    expect(connection.free).toBe(0);

    connection.release(upload.stream);

    expect(connection.free).toBeGreaterThan(0);
  });

  it('has no timer when nothing waits, also while it is being retired', async () => {
    const { connection, clock, upload } = await startShut();
    const lasting = carried();
    connection.lend(lasting.stream);
    connection.drain();
    connection.release(upload.stream);

    await clock.advance(300_000);

    expect(clock.pendingTimers).toBe(0);
  });
});

describe('stream resets by the sidecar', () => {
  /** How many resets in one turn retire a connection. */
  function countToRetire(liveness: Liveness): number {
    for (let count = 1; ; count++) if (liveness.reset()) return count;
  }

  it('retire a connection before the server’s limit for rapid resets is reached', () => {
    expect(2 * countToRetire(livenessOf()) + MAX_STREAMS).toBeLessThanOrEqual(ALLOWED);
  });

  it('are counted for half a minute', async () => {
    const most = countToRetire(livenessOf());
    const clock = new ManualClock();
    const liveness = livenessOf(undefined, clock);
    for (let count = 1; count < most; count++) expect(liveness.reset()).toBe(false);
    await clock.advance(30_000);
    expect(liveness.reset()).toBe(false);
    await clock.advance(29_999);
    for (let count = 2; count < most; count++) expect(liveness.reset()).toBe(false);
    expect(liveness.reset()).toBe(true);
  });
});
