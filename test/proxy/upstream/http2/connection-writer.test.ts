import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CarriedStream,
  ConnectionCredit,
  SendTurns,
} from '../../../../src/proxy/upstream/http2/connection-writer.ts';

const socket = { takesMore: true };

/** A stream that answers by what the test says; `turns` says how often it was asked. */
function stream(...progress: (() => ReturnType<CarriedStream['sendWaiting']>)[]) {
  const asked = { turns: 0 };
  const carried = {
    sendWaiting: () => progress[asked.turns++]?.() ?? 'done',
  } as unknown as CarriedStream;
  return { carried, asked };
}

describe('streams that wait for a window', () => {
  it('send a frame each in turn, and stuck ones wait for the next run', () => {
    const turns = new SendTurns();
    const order: string[] = [];
    const say = (name: string, progress: 'more' | 'stuck' | 'done') => () => {
      order.push(name);
      return progress;
    };
    turns.add(stream(say('a', 'more'), say('a', 'done')).carried);
    turns.add(stream(say('b', 'stuck'), say('b', 'done')).carried);
    turns.add(stream(say('c', 'more'), say('c', 'done')).carried);
    turns.run(socket);
    expect(order).toEqual(['a', 'b', 'c', 'a', 'c']);
    turns.run(socket);
    turns.run(socket);
    expect(order).toEqual(['a', 'b', 'c', 'a', 'c', 'b']);
  });

  it('are not asked after they left, even amid a run', () => {
    const turns = new SendTurns();
    const stuck = stream(() => 'stuck');
    turns.add(stuck.carried);
    turns.add(
      stream(() => {
        turns.remove(stuck.carried);
        return 'done';
      }).carried,
    );
    turns.run(socket);
    turns.run(socket);
    expect(stuck.asked.turns).toBe(1);
  });
});

function counted(most: number): { unread: ConnectionCredit; returned: () => number; roomTold: () => number } {
  let total = 0;
  let told = 0;
  const unread = new ConnectionCredit(
    (bytes) => {
      total += bytes;
    },
    () => {
      told += 1;
    },
    most,
  );
  return { unread, returned: () => total, roomTold: () => told };
}

describe('bytes of a connection that apps have not read', () => {
  it('are too many beyond the limit, and a return below it is reported once', () => {
    const { unread, roomTold } = counted(100);
    unread.came(100);
    expect(unread.isFull).toBe(false);
    unread.came(50);
    expect(unread.isFull).toBe(true);
    unread.left(49);
    expect([unread.isFull, roomTold()]).toEqual([true, 0]);
    unread.left(1);
    unread.left(1);
    expect([unread.isFull, roomTold()]).toEqual([false, 1]);
  });

  it('have their window returned at once within the limit', () => {
    const { unread, returned } = counted(100);
    unread.came(60);
    unread.came(40);
    expect(returned()).toBe(100);
  });

  it('have no window returned beyond the limit, and all of it once enough was read', () => {
    const { unread, returned } = counted(100);
    unread.came(100);
    unread.came(1);
    unread.came(30);
    expect(returned()).toBe(100);
    unread.left(30);
    expect(returned()).toBe(100);
    unread.left(1);
    expect(returned()).toBe(131);
  });

  it('never exceed the limit, and all window is returned in the end', () => {
    const step = fc.record({ came: fc.boolean(), bytes: fc.integer({ min: 1, max: 60 }) });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const { unread, returned } = counted(100);
        let [came, left] = [0, 0];
        for (const { came: more, bytes } of steps) {
          if (more) {
            came += bytes;
            unread.came(bytes);
          } else {
            const some = Math.min(bytes, came - left);
            left += some;
            unread.left(some);
          }
          expect(returned()).toBeLessThanOrEqual(came);
          if (came - left <= 100) expect(returned()).toBe(came);
        }
        unread.left(came - left);
        expect(returned()).toBe(came);
      }),
    );
  });
});
