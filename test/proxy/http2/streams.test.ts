import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import type { Role } from '../../../src/proxy/http2/settings.ts';
import {
  ENDED_BY_REMOTE,
  newWindows,
  OPEN,
  OpenStreams,
  type Stream,
  Streams,
} from '../../../src/proxy/http2/streams.ts';

const SIZES = { receiveBytes: 100, sendBytes: 50 };

function streams(role: Role = 'server'): Streams {
  return new Streams(role);
}

function opened(all: Streams, id: number, state: Stream['state'] = OPEN): Stream {
  return all.open({ id, state, ...newWindows(SIZES) });
}

describe('the streams of an HTTP/2 server connection', () => {
  test('are opened by HEADERS with odd, increasing identifiers', () => {
    const all = streams();
    expect(all.receive(5, 'headers', false)).toEqual({ kind: 'next', state: OPEN });
    opened(all, 5);
    expect(all.highestId).toBe(5);
    expect(all.receive(7, 'headers', true)).toEqual({ kind: 'next', state: ENDED_BY_REMOTE });
    expect(all.receive(3, 'headers', false)).toEqual({ kind: 'connection', reason: 'stream_id_invalid' });
    expect(all.receive(4, 'headers', false)).toEqual({ kind: 'connection', reason: 'stream_id_invalid' });
    expect(all.receive(6, 'headers', false)).toEqual({ kind: 'connection', reason: 'stream_id_invalid' });
    expect(all.receive(9, 'data', false)).toEqual({ kind: 'connection', reason: 'stream_idle' });
    expect(all.receive(4, 'window_update', false)).toEqual({ kind: 'connection', reason: 'stream_idle' });
  });

  test('are remembered by how they ended', () => {
    const all = streams();
    const one = opened(all, 1, ENDED_BY_REMOTE);
    all.send(one, 'headers', true);
    const three = opened(all, 3);
    all.send(three, 'reset', false);
    opened(all, 5);
    all.receive(5, 'reset', false);
    all.refuse(7);
    expect(all.size).toBe(0);
    expect(all.receive(1, 'data', false)).toEqual({ kind: 'connection', reason: 'stream_closed' });
    expect(all.receive(3, 'data', false)).toEqual({ kind: 'ignored' });
    expect(all.receive(5, 'headers', true)).toEqual({ kind: 'stream', reason: 'stream_closed' });
    expect(all.receive(7, 'headers', true)).toEqual({ kind: 'ignored' });
  });

  test('are remembered as reset though many others end, and forgotten in the end', () => {
    const all = streams();
    all.send(opened(all, 1), 'reset', false);
    all.send(opened(all, 3, ENDED_BY_REMOTE), 'headers', true);
    for (let id = 5; id < 2005; id += 2) all.send(opened(all, id, ENDED_BY_REMOTE), 'headers', true);
    expect(all.receive(1, 'data', false)).toEqual({ kind: 'ignored' });
    for (const id of [1877, 1999, 2001, 2003])
      expect(all.stateOf(id)).toEqual({ kind: 'closed', ending: 'ended' });
    expect(all.receive(3, 'data', false)).toEqual({ kind: 'stream', reason: 'stream_closed' });
    expect(all.receive(3, 'headers', false)).toEqual({ kind: 'connection', reason: 'stream_id_invalid' });
    for (let id = 2005; id < 3005; id += 2) all.refuse(id);
    expect(all.receive(1, 'data', false)).toEqual({ kind: 'stream', reason: 'stream_closed' });
  });

  test('are refused over the limit and after GOAWAY', () => {
    const all = streams();
    opened(all, 1);
    opened(all, 3);
    expect(all.refusalOf(5, 3)).toBeUndefined();
    expect(all.refusalOf(5, 2)).toBe('too_many_streams');
    expect(all.limitTo(3)).toEqual([]);
    expect(all.refusalOf(5, 3)).toBe('going_away');
  });
});

describe('the streams of an HTTP/2 client connection', () => {
  test('are counted', () => {
    const all = streams('client');
    expect(all.nextId()).toBe(1);
    opened(all, 1);
    expect(all.nextId()).toBe(3);
    opened(all, 0x7fffffff);
    expect(all.nextId()).toBeUndefined();
  });

  test('are opened only by the client, which knows those that it opened', () => {
    const all = streams('client');
    expect(all.receive(1, 'headers', false)).toEqual({ kind: 'connection', reason: 'stream_idle' });
    expect(all.receive(2, 'headers', false)).toEqual({ kind: 'connection', reason: 'stream_id_invalid' });
    all.send(opened(all, 1), 'reset', false);
    for (let id = 3; id < 3003; id += 2) all.send(opened(all, id), 'reset', false);
    expect(all.receive(1, 'headers', false)).toEqual({ kind: 'ignored' });
  });

  test('beyond the last one of a GOAWAY are dropped, and no more are opened', () => {
    const all = streams('client');
    for (const id of [1, 3, 5]) opened(all, id);
    expect(all.limitTo(1).map(({ id }) => id)).toEqual([3, 5]);
    expect([...all].map(({ id }) => id)).toEqual([1]);
    expect(all.nextId()).toBeUndefined();
    expect(all.receive(5, 'data', false)).toEqual({ kind: 'ignored' });
  });
});

test('a change of SETTINGS_INITIAL_WINDOW_SIZE moves all windows, also below zero', () => {
  const all = streams();
  const one = opened(all, 1);
  const three = opened(all, 3);
  one.sendWindow.take(50);
  expect(all.adjustSendWindows(-20)).toBe(true);
  expect([one.sendWindow.available, three.sendWindow.available]).toEqual([-20, 30]);
  expect(all.adjustSendWindows(0x7fffffff - 30)).toBe(true);
  expect(all.adjustSendWindows(1)).toBe(false);
});

test('sending what the stream state forbids is an internal error', () => {
  const all = streams();
  const one = opened(all, 1);
  all.send(one, 'headers', true);
  expect(() => all.send(one, 'data', false)).toThrow('half_closed');
});

it('the open streams are found in the order of their identifiers', () => {
  // Identifiers far apart meet at one place.
  const gap = fc.constantFrom(1, 1, 1, 16, 32, 64, 1000);
  const step = fc.oneof(fc.record({ open: gap }), fc.record({ close: fc.nat({ max: 200 }) }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const streams = new OpenStreams<{ readonly id: number }>();
      const expected = new Map<number, { readonly id: number }>();
      let id = 1;
      for (const each of steps) {
        if ('open' in each) {
          id += 2 * each.open;
          const stream = { id };
          streams.add(stream);
          expected.set(id, stream);
        } else {
          const closed = [...expected.keys()][each.close % Math.max(1, expected.size)] ?? 7;
          streams.delete(closed);
          expected.delete(closed);
          expect(streams.get(closed)).toBeUndefined();
        }
        expect(streams.size).toBe(expected.size);
      }
      expect([...streams]).toEqual([...expected.values()]);
      for (const [known, stream] of expected) expect(streams.get(known)).toBe(stream);
      for (const other of [0, id + 2, id + 32]) expect(streams.get(other)).toBeUndefined();
    }),
  );
});
