import { expect, it, vi } from 'vitest';
import type { ProtocolHost } from '../../../../src/proxy/downstream/connection.ts';
import {
  Http2Outlet,
  type WaitingResponse,
} from '../../../../src/proxy/downstream/http2/connection-writer.ts';
import type { ServerConnection } from '../../../../src/proxy/http2/server-connection.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { Sink } from '../../transaction/ported-transaction.ts';

/** The way out of a connection beneath which is no network, and so many answers that wait for room on it. */
function start(answers: number) {
  const sink = new Sink({ decodeStrings: false });
  const carrier = { socket: sink, guarded: (act: () => void) => act() } as unknown as ProtocolHost;
  const codec = { output: { length: 0 } } as unknown as ServerConnection<unknown>;
  const outlet = new Http2Outlet(carrier, codec, new ManualClock());
  const stepped: number[] = [];
  /** Frames that each has left to send. */
  const left = new Array<number>(answers).fill(0);
  const waiting = left.map(
    (_, at): WaitingResponse => ({
      step() {
        stepped.push(at);
        left[at] = (left[at] as number) - 1;
        return (left[at] as number) >= 0;
      },
      settle: () => {},
      dispose: () => {},
    }),
  );
  for (const answer of waiting) outlet.waitForRoom(answer);
  return { left, outlet, stepped, waiting };
}

it('waiting answers send a frame each in turn, and one that ended meanwhile sends none', () => {
  const { left, outlet, stepped, waiting } = start(3);
  left.splice(0, 3, 2, 1, 1);
  outlet.waitNoMore(waiting[1] as WaitingResponse);
  outlet.serveWaiting();
  expect(stepped).toEqual([0, 2, 0, 2, 0, 2]);
});

it('the cost of a waiting answer does not grow with the number of others', () => {
  const answers = 1000;
  const { outlet, stepped } = start(answers);
  const { indexOf } = Array.prototype;
  let looks = 0;
  function look(list: unknown[], one: unknown, from = 0): number {
    const at = Reflect.apply(indexOf, list, [one, from]) as number;
    looks += (at === -1 ? list.length : at + 1) - from;
    return at;
  }
  const searches = [
    vi.spyOn(Array.prototype, 'indexOf').mockImplementation(function (this: unknown[], one, from) {
      return look(this, one, from);
    }),
    vi.spyOn(Array.prototype, 'includes').mockImplementation(function (this: unknown[], one, from) {
      return look(this, one, from) !== -1;
    }),
  ];
  // A peer has this done by each WINDOW_UPDATE.
  outlet.serveWaiting();
  for (const search of searches) search.mockRestore();
  expect(stepped.length).toBe(answers);
  // With fewer, it searches by something that is not counted here.
  expect(looks).toBeGreaterThanOrEqual(answers);
  expect(looks).toBeLessThanOrEqual(2 * answers);
});
