import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { CoalescingWriter } from '../../../src/proxy/io/coalescing-writer.ts';

/** Both ends of a connection. */
async function socketPair(): Promise<[Socket, Socket]> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = connect((server.address() as { port: number }).port, '127.0.0.1');
  const [far] = (await once(server, 'connection')) as [Socket];
  onTestFinished(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return [near, far];
}

async function received(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks);
}

it('the coalescing writer sends text and bytes in order, each flush unchanged', async () => {
  const [near, far] = await socketPair();
  const writer = new CoalescingWriter(near);
  const large = Buffer.alloc(100_000, 'l');
  const every = Buffer.from(Array.from({ length: 256 }, (_, octet) => octet));

  writer.text('head\xff');
  writer.bytes(every);
  writer.bytes(large);
  writer.text('between');
  writer.bytes(large);
  writer.flush();
  writer.flush();
  writer.text('end');
  writer.flush();
  near.end();

  const expected = [
    Buffer.from('head\xff', 'latin1'),
    every,
    large,
    Buffer.from('between'),
    large,
    Buffer.from('end'),
  ];
  expect((await received(far)).equals(Buffer.concat(expected))).toBe(true);
});

it('the coalescing writer sends nothing before a flush and never what was cleared', async () => {
  const [near, far] = await socketPair();
  const writer = new CoalescingWriter(near);

  writer.text('dropped');
  expect(near.bytesWritten).toBe(0);
  writer.clear();
  writer.text('kept');
  writer.flush();
  near.end();

  expect((await received(far)).toString()).toBe('kept');
});

it('the coalescing writer keeps a copy of its input', async () => {
  const [near, far] = await socketPair();
  const writer = new CoalescingWriter(near);
  const small = Buffer.alloc(10, 's');
  const large = Buffer.alloc(10_000, 'l');

  writer.bytes(small);
  writer.bytes(large);
  small.fill('x');
  large.fill('x');
  writer.flush();
  near.end();

  expect((await received(far)).toString()).toBe('s'.repeat(10) + 'l'.repeat(10_000));
});

it('the coalescing writer begins another block when text does not fit into the rest of one', async () => {
  const [near, far] = await socketPair();
  const writer = new CoalescingWriter(near);
  const [large, text, behind] = [60_000, 30_000, 5000].map((bytes, index) =>
    'ltb'.charAt(index).repeat(bytes),
  );

  writer.bytes(Buffer.from(large as string));
  writer.text(text as string);
  writer.bytes(Buffer.from(behind as string));
  writer.flush();
  near.end();

  expect((await received(far)).toString()).toBe(`${large}${text}${behind}`);
});

it('the coalescing writer keeps the order for all sizes up to and above a block', async () => {
  const [near, far] = await socketPair();
  const writer = new CoalescingWriter(near);
  const expected: Buffer[] = [];
  for (const [turn, size] of [4096, 4097, 81_920, 81_921, 40_000, 41_919, 1, 200_000, 4097].entries()) {
    const text = `${turn}`.repeat(turn % 3 === 0 ? 90_000 : 5);
    const bytes = Buffer.alloc(size, `b${turn}`);
    writer.text(text);
    writer.bytes(bytes);
    expected.push(Buffer.from(text), bytes);
  }
  writer.flush();
  near.end();

  expect((await received(far)).equals(Buffer.concat(expected))).toBe(true);
});

it('the coalescing writer allocates no new memory for sequences of writes and clears', async () => {
  const [near, far] = await socketPair();
  const writer = new CoalescingWriter(near);
  far.resume();
  const piece = Buffer.alloc(10_000);
  const before = process.memoryUsage().arrayBuffers;
  for (let turn = 0; turn < 200; turn++) {
    writer.bytes(piece);
    writer.clear();
  }
  // Each of a block of its own would be 16 MB.
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4e6);
  for (let turn = 0; turn < 200; turn++) {
    writer.bytes(piece);
    if (!writer.flush()) await once(near, 'drain');
    await new Promise<void>((resolve) => near.write('', () => resolve()));
  }
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4e6);
});

it('the coalescing writer holds little more memory than the bytes that wait for a slow peer', () => {
  const waiting: Buffer[] = [];
  // The system takes nothing.
  const socket = {
    errored: null,
    destroyed: false,
    get writableLength() {
      return waiting.reduce((bytes, { length }) => bytes + length, 0);
    },
    get writableNeedDrain() {
      return this.writableLength >= 64 * 1024;
    },
    write: (piece: Buffer) => waiting.push(Buffer.isBuffer(piece) ? piece : Buffer.from(piece)),
  };
  const writer = new CoalescingWriter(socket as unknown as Socket);
  const piece = Buffer.alloc(4097, 'p');
  do writer.bytes(piece);
  while (writer.flush());
  expect(Buffer.concat(waiting)).toEqual(Buffer.alloc(16 * 4097, 'p'));
  const memory = new Set(waiting.map(({ buffer }) => buffer));
  const held = [...memory].reduce((bytes, { byteLength }) => bytes + byteLength, 0);
  // One block of 96 KiB, and the rest as large as it is.
  expect(held).toBeLessThan(200 * 1024);
});

it('the coalescing writer knows whether any part of a message was sent', async () => {
  const [near] = await socketPair();
  const writer = new CoalescingWriter(near);
  for (const piece of [Buffer.alloc(10), Buffer.alloc(10_000), Buffer.alloc(100_000)]) {
    writer.beginMessage();
    expect(writer.anyLeft).toBe(false);
    writer.bytes(piece);
    writer.flush();
    expect(writer.anyLeft).toBe(true);
  }
  writer.beginMessage();
  writer.flush();
  expect(writer.anyLeft).toBe(false);
  near.destroy();
  writer.text('late');
  writer.flush();
  expect(writer.anyLeft).toBe(false);
});

it('the coalescing writer reports a peer that does not keep up', async () => {
  const [near, far] = await socketPair();
  const writer = new CoalescingWriter(near);
  far.pause();

  writer.text('little');
  expect(writer.flush()).toBe(true);
  let keepsUp = true;
  while (keepsUp) {
    writer.bytes(Buffer.alloc(100_000));
    keepsUp = writer.flush();
  }
  far.resume();

  await once(near, 'drain');
});
