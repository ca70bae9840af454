import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';

const LISTEN = `
const { parentPort, workerData } = require('node:worker_threads');
const { createServer } = require('node:net');
const server = createServer((socket) => {
  socket.on('error', () => {});
  socket.on('data', (chunk) => socket.write(chunk));
});
server.listen({ ...workerData.at, backlog: 1 }, () => {
  parentPort.postMessage(server.address().port);
  Atomics.wait(workerData.turn, 0, 0);
});
`;

export interface SilentListener {
  readonly port: number;
  /** From now on connections are accepted, and echo. Those that have been asked for take up to a second, as TCP asks again. */
  answer(): void;
}

/** A port of loopback that answers no request for a connection: its queue is full, so that the system drops them. */
export async function startSilentListener(host: string, port = 0): Promise<SilentListener> {
  const turn = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(LISTEN, { eval: true, workerData: { at: { host, port }, turn } });
  const fillers: Socket[] = [];
  onTestFinished(async () => {
    for (const filler of fillers) filler.destroy();
    await worker.terminate();
  });
  const taken = await new Promise<number>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  // A backlog of one holds two; the third is not answered.
  const stand = Array.from({ length: 2 }, () => {
    const filler = connect({ host, port: taken });
    filler.on('error', () => {});
    fillers.push(filler);
    return new Promise((resolve) => filler.once('connect', resolve));
  });
  await Promise.all(stand);
  return {
    port: taken,
    answer() {
      Atomics.store(turn, 0, 1);
      Atomics.notify(turn, 0);
    },
  };
}
