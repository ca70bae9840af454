import { expect, it } from 'vitest';
import { RunningCommand } from '../support/run-command.ts';

/** Gives the command a terminal, whose keys are what is written to standard input. */
const TERMINAL = [
  'python3',
  '-c',
  'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))',
];

const LISTENERS = ['listen', 'admin-listen', 'issuer-listen', 'issuer-admin-listen', 'api-listen'];

function startDemo(through: readonly string[], env: Readonly<Record<string, string>> = {}): RunningCommand {
  const flags = LISTENERS.map((flag) => `--${flag}=127.0.0.1:0`);
  return new RunningCommand(['demo', '--token-lifetime=2s', ...flags], { TERM: 'xterm', ...env }, through);
}

it('the demo takes keys of a terminal: rotation, wrong secret, provider away, refused tokens, quit', async () => {
  const demo = startDemo(TERMINAL);
  const press = (key: string) => demo.process.stdin?.write(key);
  await demo.output(/Keys: r /);
  press('r');
  await demo.output(/you changed the client secret/);
  press('w');
  await demo.output(/you put the wrong client secret[\s\S]*rejected/);
  press('w');
  await demo.output(/you put the right client secret/);
  press('p');
  await demo.output(/you stopped the provider[\s\S]*ECONNREFUSED/);
  press('p');
  await demo.output(/you started the provider again/);
  press('u');
  await demo.output(/you made the API refuse every token \(401\)/);
  press('u');
  await demo.output(/you made the API take tokens again/);
  // On a terminal times are dim, and warnings stand out.
  expect(demo.stdout).toContain('\x1b[2m');
  expect(demo.stdout).toContain('\x1b[33mwarn: ');
  press('q');
  expect(await demo.exited).toEqual({ code: 0, signal: null });
});

it('Ctrl-C ends it, and NO_COLOR takes its colours away', async () => {
  const demo = startDemo(TERMINAL, { NO_COLOR: '1' });
  await demo.output(/Keys: r /);
  demo.process.stdin?.write('\x03');
  expect(await demo.exited).toEqual({ code: 0, signal: null });
  expect(demo.stdout).not.toContain('\x1b[');
});

it('without a terminal it takes no keys and offers none', async () => {
  const demo = startDemo([]);
  demo.process.stdin?.write('q');
  await demo.output(/Ctrl-C ends/);
  expect(demo.stdout).not.toContain('Keys:');
  demo.process.kill('SIGTERM');
  expect(await demo.exited).toEqual({ code: 0, signal: null });
});
