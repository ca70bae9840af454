import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** Nothing is read at first, so that everything that can fill up does. */
const STALL_MS = 3000;
const STEP_MS = 20;

/**
 * Reads an answer no faster than `bytesPerSecond`, after a stall.
 * @returns how many bytes its body had.
 * @throws {Error} unless it is answered 200 and comes to its end.
 */
export async function readSlowly(port: number, path: string, bytesPerSecond: number): Promise<number> {
  const request = get({ host: '127.0.0.1', port, path, agent: false });
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  if (answer.statusCode !== 200) throw new Error(`${path} was answered ${answer.statusCode}`);
  await sleep(STALL_MS);
  const beganAtMs = performance.now();
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length;
    while (bytes > ((performance.now() - beganAtMs) / 1000) * bytesPerSecond) await sleep(STEP_MS);
  }
  return bytes;
}
