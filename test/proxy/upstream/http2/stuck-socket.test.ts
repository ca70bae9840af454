import { expect, it } from 'vitest';
import { StuckSocket } from '../../../../src/proxy/upstream/http2/stuck-socket.ts';

it('counts from when it was first seen that something waits', () => {
  const socket = { writableLength: 0, bytesWritten: 100 };
  const stuck = new StuckSocket(socket);
  expect([stuck.stuckMs(1_000), stuck.watches]).toEqual([0, false]);
  socket.bytesWritten = socket.writableLength = 200;
  expect([stuck.stuckMs(2_000), stuck.stuckMs(2_700), stuck.watches]).toEqual([0, 700, true]);
});

it('counts anew once some was taken, however much waits then', () => {
  const socket = { writableLength: 500, bytesWritten: 500 };
  const stuck = new StuckSocket(socket);
  stuck.stuckMs(0);
  socket.writableLength = 900;
  socket.bytesWritten = 1_000;
  expect([stuck.stuckMs(5_000), stuck.stuckMs(6_000)]).toEqual([0, 1_000]);
});

it('what is written behind what waits is nothing that was taken', () => {
  const socket = { writableLength: 500, bytesWritten: 500 };
  const stuck = new StuckSocket(socket);
  stuck.stuckMs(0);
  socket.writableLength += 100;
  socket.bytesWritten += 100;
  expect(stuck.stuckMs(5_000)).toBe(5_000);
});

it('a socket in which nothing waits is not watched', () => {
  const socket = { writableLength: 500, bytesWritten: 500 };
  const stuck = new StuckSocket(socket);
  stuck.stuckMs(0);
  socket.writableLength = 0;
  expect([stuck.stuckMs(20_000), stuck.watches]).toEqual([0, false]);
});
