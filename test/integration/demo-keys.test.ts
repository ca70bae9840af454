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

it('the demo takes keys of a terminal, and tells in sentences what comes of each', async () => {
  const demo = startDemo(TERMINAL);
  const press = (key: string) => demo.process.stdin?.write(key);
  await demo.output(/Keys: {2}r /);
  press('r');
  await demo.output(/You changed the client secret[\s\S]*got a token with the new client secret/);
  press('w');
  await demo.output(/You put the wrong client secret[\s\S]*The provider rejected the client \(/);
  press('w');
  await demo.output(/You put the right client secret[\s\S]*got a token with the new client secret/);
  press('p');
  await demo.output(/You took the provider down[\s\S]*The provider gave no token \(.*ECONNREFUSED/);
  press('p');
  await demo.output(/You brought the provider up again[\s\S]*The sidecar tried again and got a token/);
  press('s');
  await demo.output(/You made the provider slow: it takes 0\.5 s[\s\S]*token ahead of its end, in \d\.\d s/);
  press('s');
  await demo.output(/You made the provider fast again/);
  press('u');
  await demo.output(/You made the API refuse every token/);
  const [, url = ''] = await demo.output(/curl (\S+) {2,}through the sidecar/);
  const status = async () => (await fetch(url, { headers: { connection: 'close' } })).status;
  await expect.poll(status).toBe(401);
  press('u');
  await demo.output(/You made the API take tokens again/);
  await expect.poll(status).toBe(200);
  // On a terminal times are dim, a token is green, and warnings stand out.
  expect(demo.stdout).toContain('\x1b[2m');
  expect(demo.stdout).toContain('\x1b[32mThe sidecar renewed the token');
  expect(demo.stdout).toContain('\x1b[33mThe provider gave no token');
  // F1, which ends in a P: it is none of the keys.
  press('\x1bOP');
  press('q');
  expect(await demo.exited).toEqual({ code: 0, signal: null });
  expect(demo.stdout.match(/You took the provider down/g)).toHaveLength(1);
});

it('Ctrl-C ends it, and NO_COLOR takes its colours away', async () => {
  const demo = startDemo(TERMINAL, { NO_COLOR: '1' });
  await demo.output(/Keys: {2}r /);
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
