import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { ListenAddress } from '../../../src/platform/net/address.ts';
import { overTls } from '../raw-upstream.ts';
import { loopbackCertificate } from './node-upstream.ts';

/** RFC 9113 §6. */
export const TYPE = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
} as const;

const ACK = 0x1;
const END_STREAM = 0x1;
const END_HEADERS = 0x4;
const PREFACE_BYTES = 24;
const HEADER_BYTES = 9;

/** Codes of RFC 9113 §7. */
export const CODE = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  FLOW_CONTROL_ERROR: 3,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  ENHANCE_YOUR_CALM: 0xb,
} as const;

export const MAX_CONCURRENT_STREAMS = 3;
export const INITIAL_WINDOW_SIZE = 4;
export const MAX_HEADER_LIST_SIZE = 6;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** One connection that the sidecar made, of which every frame is the test's. */
export class FrameConnection {
  readonly socket: Socket;
  /** All that came, but for acknowledgements of SETTINGS. */
  readonly frames: Frame[] = [];
  preface = '';
  /** Whether SETTINGS are acknowledged as they come. */
  acknowledges = true;
  #rest = Buffer.alloc(0);
  #ended = false;
  #waiting: (() => void)[] = [];
  #taken = 0;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', () => {});
    socket.on('close', () => this.#end());
    socket.on('end', () => this.#end());
  }

  /** The next frame of one of these types; other frames before it are passed over. */
  async next(...types: number[]): Promise<Frame> {
    for (;;) {
      while (this.#taken < this.frames.length) {
        const frame = this.frames[this.#taken++] as Frame;
        if (types.includes(frame.type)) return frame;
      }
      if (this.#ended) throw new Error(`the connection ended without a frame of type ${types.join(' or ')}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Frames of a type that have come. */
  all(type: number): Frame[] {
    return this.frames.filter((frame) => frame.type === type);
  }

  /** Resolves once so many octets of DATA have come on a stream. */
  async data(streamId: number, bytes: number): Promise<string> {
    for (;;) {
      const text = Buffer.concat(
        this.all(TYPE.DATA)
          .filter((frame) => frame.streamId === streamId)
          .map(({ payload }) => payload),
      ).toString('latin1');
      if (text.length >= bytes) return text;
      if (this.#ended) throw new Error(`the connection ended after ${text.length} octets of data`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Resolves once the sidecar has ended the connection. */
  async closed(): Promise<void> {
    while (!this.#ended) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  send(...octets: Buffer[]): void {
    this.socket.write(Buffer.concat(octets));
  }

  settings(...pairs: [identifier: number, value: number][]): void {
    const payload = Buffer.alloc(pairs.length * 6);
    pairs.forEach(([identifier, value], index) => {
      payload.writeUInt16BE(identifier, index * 6);
      payload.writeUInt32BE(value, index * 6 + 2);
    });
    this.send(frame(TYPE.SETTINGS, 0, 0, payload));
  }

  /** `:status: 200`, and the whole answer where there is a body or it is to end. */
  answer(streamId: number, body?: string): void {
    const flags = END_HEADERS | (body === undefined ? 0 : body === '' ? END_STREAM : 0);
    const head = frame(TYPE.HEADERS, flags, streamId, Buffer.from([0x88]));
    this.send(head, ...(body ? [dataFrame(streamId, body, true)] : []));
  }

  /** Another status, whole or with a body to come. */
  status(streamId: number, status: 401, end: boolean): void {
    const flags = END_HEADERS | (end ? END_STREAM : 0);
    this.send(frame(TYPE.HEADERS, flags, streamId, Buffer.from(`\x08\x03${status}`, 'latin1')));
  }

  /** Resolves once the sidecar has read all that was sent. */
  async read(): Promise<void> {
    this.send(frame(TYPE.PING, 0, 0, Buffer.alloc(8)));
    await this.next(TYPE.PING);
  }

  /** Answers PING. */
  pong(payload: Buffer): void {
    this.send(frame(TYPE.PING, ACK, 0, payload));
  }

  reset(streamId: number, code: number): void {
    this.send(frame(TYPE.RST_STREAM, 0, streamId, number(code)));
  }

  goaway(lastStreamId: number, code: number): void {
    this.send(frame(TYPE.GOAWAY, 0, 0, Buffer.concat([number(lastStreamId), number(code)])));
  }

  windowUpdate(streamId: number, increment: number): void {
    this.send(frame(TYPE.WINDOW_UPDATE, 0, streamId, number(increment)));
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    if (this.preface === '' && this.#rest.length >= PREFACE_BYTES) {
      this.preface = this.#rest.toString('latin1', 0, PREFACE_BYTES);
      this.#rest = this.#rest.subarray(PREFACE_BYTES);
    }
    while (this.preface !== '' && this.#rest.length >= HEADER_BYTES) {
      const length = this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < HEADER_BYTES + length) break;
      const [type, flags] = [this.#rest[3] as number, this.#rest[4] as number];
      const streamId = this.#rest.readUInt32BE(5);
      const payload = Buffer.from(this.#rest.subarray(HEADER_BYTES, HEADER_BYTES + length));
      this.#rest = this.#rest.subarray(HEADER_BYTES + length);
      if (type === TYPE.SETTINGS && flags !== ACK && this.acknowledges)
        this.send(frame(TYPE.SETTINGS, ACK, 0));
      if (type !== TYPE.SETTINGS || flags !== ACK) this.frames.push({ type, flags, streamId, payload });
    }
    this.#wake();
  }

  #end(): void {
    this.#ended = true;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}

export class FrameUpstream {
  readonly address: ListenAddress;
  readonly protocol = overTls ? ('https' as const) : ('http' as const);
  readonly caFile: string | undefined;
  readonly connections: FrameConnection[] = [];
  #taken = 0;
  #waiting: (() => void)[] = [];

  constructor(address: ListenAddress, caFile: string | undefined) {
    this.address = address;
    this.caFile = caFile;
  }

  /** The next connection, in order of arrival. */
  async connection(): Promise<FrameConnection> {
    for (;;) {
      const next = this.connections[this.#taken];
      if (next !== undefined) {
        this.#taken++;
        return next;
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  accept(socket: Socket, onConnection: (connection: FrameConnection) => void): void {
    const connection = new FrameConnection(socket);
    this.connections.push(connection);
    onConnection(connection);
    for (const resume of this.#waiting.splice(0)) resume();
  }
}

/**
 * Listens on loopback, over TLS or plain as the run has it, and is gone when the test is over.
 * @param onConnection says what is said first; SETTINGS that allow everything unless told otherwise.
 * @param protocols that it takes by ALPN.
 */
export async function startFrames(
  onConnection: (connection: FrameConnection) => void = (connection) => connection.settings(),
  protocols: readonly string[] = ['h2'],
): Promise<FrameUpstream> {
  const tls = overTls ? await loopbackCertificate() : undefined;
  const accept = (socket: Socket): void => upstream.accept(socket, onConnection);
  const server = tls
    ? createTlsServer({ key: tls.key, cert: tls.cert, ALPNProtocols: [...protocols] }, accept)
    : createServer({ noDelay: true }, accept);
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const upstream = new FrameUpstream(
    { host: '127.0.0.1', port: (server.address() as AddressInfo).port },
    tls?.caFile,
  );
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return upstream;
}

/** A frame written by hand. */
export function frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, payload]);
}

export function dataFrame(streamId: number, text: string, end: boolean): Buffer {
  return frame(TYPE.DATA, end ? END_STREAM : 0, streamId, Buffer.from(text, 'latin1'));
}

/** Whether a frame ends its stream. */
export function ends({ flags }: Frame): boolean {
  return (flags & END_STREAM) !== 0;
}

function number(value: number): Buffer {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value, 0);
  return octets;
}
