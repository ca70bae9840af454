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

describe('those that wait for a window', () => {
  it('send a frame each in turn, and those that are stuck wait for the next run', () => {
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

  it('are asked no more once they have left, even amid the run that they were stuck in', () => {
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

describe('what apps have not read', () => {
  it('is full beyond the bound, and tells once when it is so no more', () => {
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

  it('gives back at once what fits, though nobody has read it', () => {
    const { unread, returned } = counted(100);
    unread.came(60);
    unread.came(40);
    expect(returned()).toBe(100);
  });

  it('gives back nothing beyond the bound, and all of it once enough has left', () => {
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

  it('never has more granted than the bound allows, and owes nothing in the end', () => {
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
