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
  /** Presses a key; what is told then comes in either order, as the sidecar may be done before the demo has said so. */
  async function press(key: string, ...sentences: readonly RegExp[]): Promise<void> {
    const before = demo.stdout.length;
    demo.process.stdin?.write(key);
    for (const { source } of sentences) await demo.output(new RegExp(`^[\\s\\S]{${before},}?(?:${source})`));
  }
  const NEW_SECRET = 'got a token with the new client secret';
  const OTHER_GRANT = 'renewed the token ahead of its end|tried again and got a token';
  await demo.output(/Keys: {2}r /);
  // A grant that is due at this very moment takes the new secret for its own, and tells of that.
  while (!demo.stdout.includes(NEW_SECRET)) {
    await press('r', /You changed the client secret/, new RegExp(`${NEW_SECRET}|${OTHER_GRANT}`));
  }
  await press('w', /You put the wrong client secret/, /The provider rejected the client \(/);
  await press('w', /You put the right client secret/, new RegExp(`${NEW_SECRET}|${OTHER_GRANT}`));
  await press('p', /You took the provider down/, /The provider gave no token \(.*ECONNREFUSED/);
  await press(
    'p',
    /You brought the provider up again\. The sidecar asks again in \d+(?:\.\d)? m?s\./,
    /The sidecar tried again and got a token/,
  );
  await press('s', /You made the provider slow: it takes 0\.5 s/, /token ahead of its end, in \d\.\d s/);
  await press('s', /You made the provider fast again/);
  await press(
    'u',
    /You made the API refuse every token/,
    /The app gets 401: the API refuses the new token, too\./,
  );
  const [, url = ''] = await demo.output(/curl (\S+) {2,}# 200: through the sidecar/);
  const status = async () => (await fetch(url, { headers: { connection: 'close' } })).status;
  await expect.poll(status).toBe(401);
  await press(
    'u',
    /You made the API take tokens again/,
    /The API takes the token: the app's requests succeed again\./,
  );
  await expect.poll(status).toBe(200);
  // On a terminal times are dim, a token is green, and warnings stand out.
  expect(demo.stdout).toContain('\x1b[2m');
  expect(demo.stdout).toContain('\x1b[32mThe sidecar renewed the token');
  expect(demo.stdout).toContain('\x1b[33mThe provider gave no token');
  // F1, which ends in a P: it is none of the keys.
  await press('\x1bOP');
  await press('q');
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
