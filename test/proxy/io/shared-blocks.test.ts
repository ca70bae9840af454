/** All connections take their blocks from the same pools: long random sequences, beside plain concatenation. */

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ByteQueue } from '../../../src/proxy/io/byte-queue.ts';
import { CoalescingWriter } from '../../../src/proxy/io/coalescing-writer.ts';
import { volume } from '../../support/volume.ts';

const CONNECTIONS = 4;

/** Around what goes as text, what is copied aside, and what a block holds. */
const size = fc.oneof(
  fc.integer({ min: 1, max: 6000 }),
  fc.constantFrom(4096, 4097, 16_384, 16_385, 98_304, 98_305, 120_000),
);

const connection = fc.nat(CONNECTIONS - 1);

/** Filled anew for each piece, as the buffer is that all sockets read into. */
const SHARED = Buffer.alloc(120_000);

function piece(bytes: number, step: number): Buffer {
  SHARED.fill(`${step.toString(36)}.`);
  return SHARED.subarray(0, bytes);
}

it('in long random sequences, queues that share blocks return what each was given', () => {
  const step = fc.record({
    connection,
    kind: fc.constantFrom('add', 'add', 'take', 'take', 'clear'),
    size,
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 100, maxLength: 250, size: 'max' }), (steps) => {
      const queues = Array.from({ length: CONNECTIONS }, () => ({ queue: new ByteQueue(), plain: '' }));
      for (const [at, { connection, kind, size }] of steps.entries()) {
        const one = queues[connection] as { queue: ByteQueue; plain: string };
        if (kind === 'add') {
          one.queue.add(piece(size, at));
          one.plain += piece(size, at).toString('latin1');
        } else if (kind === 'clear') {
          one.queue.clear();
          one.plain = '';
        } else {
          one.queue.take(size, (octets) => {
            expect(octets.toString('latin1') === one.plain.slice(0, octets.length)).toBe(true);
            one.plain = one.plain.slice(octets.length);
          });
        }
        expect(one.queue.length).toBe(one.plain.length);
      }
      for (const { queue, plain } of queues) {
        expect(Buffer.concat(queue.pieces()).toString('latin1') === plain).toBe(true);
      }
    }),
    { numRuns: volume(30, 300) },
  );
});

/** Both ends of a connection; the far end counts what it gets. */
async function pair(): Promise<{ near: Socket; far: Socket; received: Promise<Buffer> }> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = connect((server.address() as { port: number }).port, '127.0.0.1');
  const [far] = (await once(server, 'connection')) as [Socket];
  server.close();
  const chunks: Buffer[] = [];
  far.on('data', (chunk: Buffer) => chunks.push(chunk));
  return { near, far, received: once(far, 'end').then(() => Buffer.concat(chunks)) };
}

it('in long random sequences, writers that share blocks send what each was given, even to slow readers', async () => {
  const step = fc.record({
    connection,
    kind: fc.constantFrom('bytes', 'bytes', 'text', 'flush', 'flush', 'clear', 'pause', 'resume', 'turn'),
    size,
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 100, maxLength: 250, size: 'max' }), async (steps) => {
      const pairs = await Promise.all(Array.from({ length: CONNECTIONS }, pair));
      const ends = pairs.map((one) => ({
        ...one,
        writer: new CoalescingWriter(one.near),
        gathered: '',
        sent: '',
      }));
      for (const [at, { connection, kind, size }] of steps.entries()) {
        const one = ends[connection] as (typeof ends)[number];
        if (kind === 'bytes' || kind === 'text') {
          const octets = piece(size, at);
          if (kind === 'bytes') one.writer.bytes(octets);
          else one.writer.text(octets.toString('latin1'));
          one.gathered += piece(size, at).toString('latin1');
        } else if (kind === 'flush') {
          one.writer.flush();
          one.sent += one.gathered;
          one.gathered = '';
        } else if (kind === 'turn') {
          await new Promise(setImmediate);
        } else if (kind === 'clear' && one.gathered.length < 90_000) {
          // Nothing of it has left: it fitted into one block.
          one.writer.clear();
          one.gathered = '';
        } else if (kind === 'pause') {
          one.far.pause();
        } else if (kind === 'resume') {
          one.far.resume();
        }
      }
      for (const { near, far, writer } of ends) {
        writer.flush();
        near.end();
        far.resume();
      }
      for (const { received, sent, gathered, near, far } of ends) {
        expect((await received).toString('latin1') === sent + gathered).toBe(true);
        near.destroy();
        far.destroy();
      }
    }),
    { numRuns: volume(10, 100) },
  );
});
