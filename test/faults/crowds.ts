/** Crowds at the admin listener of a real process: the data path goes on, and memory stays within its bound. */

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { readShippedNode } from '../support/shipped-node.ts';
import { ChildSidecar } from './child-sidecar.ts';
import { FaultProvider } from './provider.ts';
import { FaultUpstream } from './upstream.ts';

const CONNECTIONS = 5000;
const AT_ONCE = 100;

/** What the listener's connections, and the collections that they cause, may add: they took 45 MB when nothing bounded them. */
const MAX_GROWTH_BYTES = 18e6;

const PROBE = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';

const nowMs = () => performance.now();

/** Each is answered, and its client never closes it. */
export async function runAdminCrowd(): Promise<void> {
  const provider = await FaultProvider.start({ nowMs, lifetimeSeconds: 300, leewayMs: 0 });
  onTestFinished(() => provider.close());
  const upstream = await FaultUpstream.start({ nowMs, endOf: (token) => provider.endOf(token) });
  onTestFinished(() => upstream.close());
  // How much is held between two collections is a matter of the image's settings.
  const { flags, env } = await readShippedNode();
  const sidecar = await ChildSidecar.start({
    tokenUrl: provider.url,
    upstreamUrl: upstream.url,
    env: { ...env, NODE_OPTIONS: flags.join(' ') },
  });
  const { app, command } = sidecar;
  const ownBytes = async (): Promise<number> => {
    const status = await readFile(`/proc/${command.process.pid}/status`, 'utf8');
    return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  };
  const { host, port } = sidecar.admin;
  const opened = new Set<Socket>();
  onTestFinished(() => {
    for (const socket of opened) socket.destroy();
  });

  const crowd = async (): Promise<void> => {
    const batch = Array.from({ length: AT_ONCE }, async (_, n) => {
      const localAddress = `127.0.1.${n}`;
      const socket = connect({ port, host, localAddress }, () => socket.write(PROBE));
      opened.add(socket);
      socket.on('error', () => undefined).once('close', () => opened.delete(socket));
      await Promise.race([once(socket, 'data'), once(socket, 'close')]);
      socket.resume();
    });
    await Promise.all([...batch, app.send()]);
  };

  /** The least that it held after any of ten crowds: a single reading has whatever is about to be collected. */
  const heldAfterCrowds = async (): Promise<number> => {
    const readings: number[] = [];
    for (let seen = 0; seen < 1000; seen += AT_ONCE) {
      await crowd();
      readings.push(await ownBytes());
    }
    return Math.min(...readings);
  };

  // The first crowds are not counted: code is compiled for them.
  const before = await heldAfterCrowds();
  for (let seen = 1000; seen < CONNECTIONS; seen += AT_ONCE) await crowd();
  const after = await heldAfterCrowds();

  expect(after - before).toBeLessThanOrEqual(MAX_GROWTH_BYTES);
  await expect.poll(() => opened.size).toBe(0);
  expect(app.answers.length).toBeGreaterThanOrEqual(CONNECTIONS / AT_ONCE);
  expect(app.answers.every(({ status }) => status === 200)).toBe(true);
  expect((await sidecar.metrics()).sum('admin_connections_dropped_total')).toBe(0);
  expect(command.stderr).toBe('');
  expect(await sidecar.terminate()).toBe(0);
}
