import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { answersInTurn } from '../../../src/platform/net/answers-in-turn.ts';

/** Requests by name, whose first letter is the address, each on a connection; what became of each, and in which turn of the event loop. */
function asking() {
  const inTurn = answersInTurn();
  const outcomes: string[] = [];
  let turn = 0;
  return {
    outcomes,
    ask(name: string): EventEmitter {
      const socket = new EventEmitter();
      inTurn({ req: { socket } } as unknown as ServerResponse, name.slice(0, 1)).then((isItsTurn) =>
        outcomes.push(isItsTurn ? `${name} in ${turn}` : `${name} left`),
      );
      return socket;
    },
    async turns(count: number): Promise<void> {
      for (let n = 0; n < count; n++) {
        turn++;
        await nextTurn();
      }
    },
  };
}

it('one answer begins in a turn, of one address after the other', async () => {
  const { ask, outcomes, turns } = asking();
  for (const name of ['a1', 'a2', 'a3', 'a4']) ask(name);
  await Promise.resolve();
  await turns(1);
  for (const name of ['b1', 'b2', 'c1']) ask(name);
  await turns(8);
  expect(outcomes).toEqual(['a1 in 0', 'a2 in 1', 'a3 in 2', 'b1 in 3', 'c1 in 4', 'a4 in 5', 'b2 in 6']);
});

it('an answer does not wait if no other waits', async () => {
  const { ask, outcomes, turns } = asking();
  ask('a1');
  await Promise.resolve();
  expect(outcomes).toEqual(['a1 in 0']);
  await turns(3);
  ask('a2');
  await Promise.resolve();
  expect(outcomes).toEqual(['a1 in 0', 'a2 in 3']);
});

it('an answer that is given up takes no turn', async () => {
  const { ask, outcomes, turns } = asking();
  ask('a1');
  const left = [ask('b1'), ask('a2')];
  ask('a3');
  for (const socket of left) socket.emit('close');
  await turns(4);
  expect(outcomes.map((outcome) => outcome.replace(/in \d/, 'begun'))).toEqual([
    'a1 begun',
    'b1 left',
    'a2 left',
    'a3 begun',
  ]);
});
