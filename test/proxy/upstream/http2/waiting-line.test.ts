import { expect, it } from 'vitest';
import type { Http2UpstreamStream } from '../../../../src/proxy/upstream/http2/stream.ts';
import { WaitingLine } from '../../../../src/proxy/upstream/http2/waiting-line.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const MAX_WAITING = 1024;

const PATIENCE_MS = 1_000;

/** A line of requests that are known by a letter. */
function start() {
  const clock = new ManualClock();
  const told: string[] = [];
  const name = (stream: Http2UpstreamStream | undefined) => stream as unknown as string | undefined;
  const line = new WaitingLine({
    clock,
    timeoutMs: PATIENCE_MS,
    onLate: (stream) => void told.push(`${name(stream)} is late`),
    onShorter: () => void told.push('shorter'),
  });
  return {
    clock,
    line,
    told: () => told.splice(0),
    add: (request: string, from = 0, refused = false) =>
      line.add(request as unknown as Http2UpstreamStream, from, refused),
    remove: (request: string) => line.remove(request as unknown as Http2UpstreamStream),
    takeFor: (number: number) => name(line.takeFor(number)),
    all: () => line.takeAll().map(name),
    names: (streams: readonly Http2UpstreamStream[]) => streams.map(name),
  };
}

it('waiting requests are served in order, and cancelled ones are skipped', () => {
  const { add, all, line, remove } = start();
  for (const request of ['a', 'b', 'c']) add(request);
  remove('b');
  remove('x');
  expect(line.length).toBe(2);
  add('d');
  line.takeLast();
  expect(all()).toEqual(['a', 'c']);
  expect(line.length).toBe(0);
});

it('the number of waiting requests is limited', () => {
  const { add, line } = start();
  for (let count = 0; count < MAX_WAITING; count++) add('a');
  expect(() => add('b')).toThrow(expect.objectContaining({ code: 'overloaded' }));
  expect(line.length).toBe(MAX_WAITING);
});

it('a new connection is for the first request that accepts one with its number', () => {
  const { add, takeFor } = start();
  add('later', 2);
  add('any');
  add('next', 1);
  expect([takeFor(1), takeFor(1), takeFor(1), takeFor(2), takeFor(2)]).toEqual([
    'any',
    'next',
    undefined,
    'later',
    undefined,
  ]);
});

it('it is known whether any waiting request accepts an open connection', () => {
  const { add, line, remove } = start();
  expect(line.anyForWhatStands).toBe(false);
  add('later', 1);
  expect(line.anyForWhatStands).toBe(false);
  add('any');
  expect(line.anyForWhatStands).toBe(true);
  remove('any');
  expect(line.anyForWhatStands).toBe(false);
});

it('streams are lent in order, and a request for a later connection does not delay others', () => {
  const { add, all, line } = start();
  add('later', 1);
  add('a');
  add('b');
  add('c');
  const lent: unknown[] = [];
  let room = 2;
  line.lendOut(
    ({ from }) => (from === 0 && room-- > 0 ? 'room' : undefined),
    (stream, found) => lent.push([stream, found]),
  );
  expect(lent).toEqual([
    ['a', 'room'],
    ['b', 'room'],
  ]);
  expect(all()).toEqual(['later', 'c']);
});

it('if the first request finds no stream, none is sought for those after it', () => {
  const { add, line } = start();
  add('a');
  add('b');
  let looks = 0;
  line.lendOut(
    () => {
      looks++;
      return undefined;
    },
    () => {},
  );
  expect(looks).toBe(1);
});

it('the order is evaluated anew when a served request changed it', () => {
  const { add, all, line, remove } = start();
  for (const request of ['a', 'b', 'c']) add(request, request === 'a' ? 1 : 0);
  const lent: unknown[] = [];
  line.lendOut(
    ({ from }) => (from === 0 ? 'room' : undefined),
    (stream) => {
      lent.push(stream);
      if (lent.length === 1) {
        remove('c');
        add('d');
      }
    },
  );
  expect(lent).toEqual(['b', 'd']);
  expect(all()).toEqual(['a']);
});

it('more connections are needed if more requests wait than the coming ones will carry', () => {
  const { add, line } = start();
  expect(line.exceeds(() => 0)).toBe(false);
  add('a');
  add('b');
  add('later', 3);
  const asked: number[] = [];
  const room = (all: number, later: number) => (lowest: number) => {
    asked.push(lowest);
    return lowest === 3 ? later : all;
  };
  expect(line.exceeds(room(3, 1))).toBe(false);
  expect(asked).toEqual([0, 3]);
  expect([line.exceeds(room(2, 1)), line.exceeds(room(3, 0))]).toEqual([true, true]);
});

it('requests that wait for a failed connection fail unless the connection that refused them is open', () => {
  const { add, all, line, names } = start();
  add('any');
  add('next', 2);
  add('refused', 3, true);
  add('last', 1);
  expect(names(line.takeHopeless(1, true))).toEqual(['next']);
  expect(all()).toEqual(['any', 'refused', 'last']);
  add('refused', 3, true);
  expect(names(line.takeHopeless(2, false))).toEqual(['refused']);
  add('at last', 3, true);
  expect(names(line.takeHopeless(-1, true))).toEqual(['at last']);
});

it('no request waits longer than the timeout, and the end of the waiting is reported once', async () => {
  const { add, clock, line, told } = start();
  add('a');
  await clock.advance(400);
  add('b');
  await clock.advance(599);
  expect(told()).toEqual([]);
  await clock.advance(1);
  expect(told()).toEqual(['a is late']);
  expect(line.length).toBe(1);
  await clock.advance(399);
  add('c');
  expect(told()).toEqual([]);
  await clock.advance(1);
  expect(told()).toEqual(['b is late']);
  await clock.advance(PATIENCE_MS - 1);
  expect(told()).toEqual(['c is late', 'shorter']);
});

it('a disposed waiting line reports no timeouts', async () => {
  const { add, clock, line, told } = start();
  add('a');
  line.dispose();
  expect([line.length, clock.pendingTimers]).toEqual([0, 0]);
  await clock.advance(PATIENCE_MS);
  expect(told()).toEqual([]);
});
