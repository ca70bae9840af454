import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { freePort } from '../support/free-port.ts';

const ROOT = join(import.meta.dirname, '../..');

it.each(['SIGTERM', 'SIGKILL'] as const)(
  'npm start leaves nothing behind when npm alone gets %s',
  async (signal) => {
    const admin = await freePort();
    const listeners = ['listen', 'issuer-listen', 'issuer-admin-listen', 'api-listen'];
    const flags = [...listeners.map((flag) => `--${flag}=127.0.0.1:0`), `--admin-listen=127.0.0.1:${admin}`];
    const npm = spawn('npm', ['start', '--', ...flags], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
    onTestFinished(() => {
      try {
        // The whole group, which is the test's own.
        process.kill(-(npm.pid as number), 'SIGKILL');
      } catch {
        // Nothing of it is left.
      }
    });
    let text = '';
    npm.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    // Each process that npm started holds the pipe: it ends when the last has ended.
    const allGone = once(npm.stdout, 'close');
    await expect.poll(() => text, { timeout: 15_000 }).toContain('Ctrl-C ends');
    npm.kill(signal);
    await allGone;
    await expect(fetch(`http://127.0.0.1:${admin}/livez`)).rejects.toThrow();
  },
  40_000,
);
