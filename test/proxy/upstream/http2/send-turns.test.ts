import { describe, expect, it } from 'vitest';
import type { CarriedStream } from '../../../../src/proxy/upstream/http2/carried-stream.ts';
import { SendTurns } from '../../../../src/proxy/upstream/http2/send-turns.ts';

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
