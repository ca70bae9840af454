import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { listenForShutdown } from '../../../src/platform/process/shutdown.ts';

/** A process that is sent signals by the test. */
function fakeProcess(isTTY: boolean) {
  const exits: number[] = [];
  const process = Object.assign(new EventEmitter(), {
    stdin: { isTTY },
    exit: (code: number) => exits.push(code),
  });
  return {
    process: process as unknown as NodeJS.Process,
    send: (signal: string) => process.emit(signal),
    exits,
  };
}

it('SIGHUP asks for the end, until a command has another use for it', () => {
  const { process, send, exits } = fakeProcess(false);
  const shutdown = listenForShutdown(process);
  let hangups = 0;
  shutdown.takeHangups(() => hangups++);
  send('SIGHUP');
  send('SIGHUP');
  expect([hangups, shutdown.signal.aborted]).toEqual([2, false]);
  send('SIGTERM');
  expect([shutdown.signal.aborted, exits]).toEqual([true, []]);
  send('SIGTERM');
  expect(exits).toEqual([0]);
});

it('of a program on a terminal SIGHUP asks for the end all the same: the terminal has gone', () => {
  const { process, send, exits } = fakeProcess(true);
  const shutdown = listenForShutdown(process);
  shutdown.takeHangups(() => {
    throw new Error('nobody asked to hang up');
  });
  send('SIGHUP');
  send('SIGHUP');
  expect([shutdown.signal.aborted, exits]).toEqual([true, []]);
});
