import { expect, it } from 'vitest';
import { FOR_OTHERS, FOR_PROBES, Turns } from '../../src/admin/turns.ts';
import { WorkingClock } from './working-clock.ts';

function setUp(allowance = FOR_OTHERS) {
  const clock = new WorkingClock();
  const turns = new Turns(allowance, clock);
  const order: string[] = [];
  const leaving = new Map<string, () => void>();
  return {
    clock,
    turns,
    order,
    leaving,
    work(ms: number): void {
      const startedAtMs = clock.monotonicMs();
      clock.work(ms);
      turns.spentSince(startedAtMs);
    },
    ask(name: string, address: string): void {
      const turn = turns.wait(address, (leave) => leaving.set(name, leave));
      if (turn === undefined) order.push(name);
      else void turn.then(() => order.push(name));
    },
  };
}

it('few requests are answered at once, and no timer is set', () => {
  const { clock, order, ask } = setUp();
  for (let n = 0; n < 100; n++) ask(`${n}`, 'a');
  expect([order.length, clock.pendingTimers]).toEqual([100, 0]);
});

it('what takes long is answered for a twentieth of the time, however many ask', async () => {
  const { clock, turns, work } = setUp();
  let answered = 0;
  const askForEver = async (): Promise<void> => {
    for (;;) {
      await turns.wait('a', () => undefined);
      work(10);
      answered += 1;
      if (answered > 10_000) return;
    }
  };
  for (let n = 0; n < 64; n++) void askForEver();
  await clock.advance(60_000);
  // 250 ms at once, the 64 that ask in the same moment (400 ms of theirs are paid back), and 3 s of the minute: 10.2 ms each.
  expect(answered).toBeGreaterThan(290);
  expect(answered).toBeLessThan(400);
});

it('each address has its turn', async () => {
  const { clock, work, order, ask } = setUp();
  work(300);
  for (let n = 0; n < 50; n++) ask(`scraper ${n}`, 'crowd');
  ask('prometheus', 'other');
  await clock.advance(800);
  expect(order.slice(0, 2)).toEqual(['scraper 0', 'prometheus']);
  expect(order.length).toBeLessThan(50);
  await clock.advance(5000);
  expect([order.length, clock.pendingTimers]).toEqual([51, 0]);
});

it('what answers share counts once', () => {
  const { clock, turns, order, ask } = setUp();
  const startedAtMs = clock.monotonicMs();
  clock.work(100);
  for (let n = 0; n < 8; n++) turns.spentSince(startedAtMs);
  ask('at once', 'a');
  expect(order).toEqual(['at once']);
});

it.each([
  ['others', FOR_OTHERS, 8000],
  ['probes', FOR_PROBES, 400],
])(
  'one answer during which the process was stopped for a minute holds back %s for a bounded time',
  async (_, allowance, boundMs) => {
    const { clock, work, order, ask } = setUp(allowance);
    work(60_000);
    ask('next', 'a');
    await clock.advance(boundMs + 5);
    expect(order).toEqual(['next']);
  },
);

it('who has gone takes no turn and is not kept', async () => {
  const { clock, work, order, leaving, ask } = setUp();
  work(300);
  for (let n = 0; n < 1000; n++) ask(`gone ${n}`, 'a');
  for (const leave of leaving.values()) leave();
  expect(order).not.toContain('next');
  ask('next', 'a');
  await clock.advance(701);
  expect(order.at(-1)).toBe('next');
  expect([order.length, clock.pendingTimers]).toEqual([1001, 0]);
  for (const leave of leaving.values()) leave();
  expect(order.length).toBe(1001);
});
