/** Probes of a sidecar while other pods ask its admin listener for all that it has, or for nothing. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { RunningCommand, SURROUNDINGS } from '../support/run-command.ts';
import { volume } from '../support/volume.ts';

const PROBES = 30;

/** A pod needs three in a row to be restarted, or to get no requests. */
const MAX_FAILED = 1;

/** Between two probes, which come from an address each: those of one kubelet are too far apart to meet. */
const SPACING_MS = volume(40, 1000);

/** The kubelet's. */
const TIMEOUT_MS = 1000;

const CROWD = join(import.meta.dirname, 'admin-crowd.ts');

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

const PAGES = [get('/metrics'), get('/'), get('/api/status')];
const PROBE = [get('/livez')];
const NOTHING = ['', 'GET /live'];
/** Each of its octets is a chunk. */
const BODY = [
  get('/metrics').replace('\r\n\r\n', `\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(10_000)}`),
];

/** Lets so many connections of each of so many addresses come, until the test has finished. */
async function crowd(port: number, addresses: number, each: number, texts: readonly string[]): Promise<void> {
  const asked = [port, addresses, each, texts].map((word) => JSON.stringify(word));
  const pods = spawn(process.execPath, [CROWD, ...asked], {
    env: SURROUNDINGS,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    const exited = once(pods, 'exit');
    pods.stdin.end();
    await exited;
  });
  await once(pods.stdout, 'data');
}

/** As the kubelet asks: on a connection of its own, and not for long. */
function probe(port: number, localAddress: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress }, () =>
      socket.write('GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n'),
    );
    const timer = setTimeout(() => socket.destroy(), TIMEOUT_MS);
    let said = '';
    socket
      .on('error', () => undefined)
      .on('data', (bytes) => {
        said += bytes;
      });
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(said.startsWith('HTTP/1.1 200 ') && said.endsWith('\r\n\r\nok\n'));
    });
  });
}

it.each([
  [5, 40, 'pages and metrics', PAGES],
  [20, 8, 'pages and metrics', PAGES],
  [140, 1, 'pages and metrics', PAGES],
  [1, 200, 'pages and metrics', PAGES],
  [140, 1, 'the same probe', PROBE],
  [5, 40, 'nothing', NOTHING],
  [5, 40, 'metrics with a body octet by octet', BODY],
  [1, 200, 'metrics with a body octet by octet', BODY],
  [140, 1, 'metrics with a body octet by octet', BODY],
])('probes are answered while %i addresses with %i connections each ask for %s', async (...row) => {
  const [addresses, each, , texts] = row;
  const running = new RunningCommand([
    ...['proxy', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
    ...['--upstream', 'http://127.0.0.1:1', '--token-url', 'http://127.0.0.1:1/token'],
    ...['--credentials-dir', '/nonexistent'],
  ]);
  const [, port] = await running.output(/"admin":"127\.0\.0\.1:(\d+)"/);
  await crowd(Number(port), addresses, each, texts);
  const probes: Promise<boolean>[] = [];
  for (let n = 0; n < PROBES; n++) {
    probes.push(probe(Number(port), `127.0.0.${1 + n}`));
    await pause(SPACING_MS);
  }
  const failed = (await Promise.all(probes)).filter((isAnswered) => !isAnswered);
  expect(failed.length).toBeLessThanOrEqual(MAX_FAILED);
});
