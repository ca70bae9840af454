import type { Socket } from 'node:net';
import { connectClient } from '../raw-client.ts';
import { type Ending, ReceivedBytes } from '../received-bytes.ts';
import { readBlock, writeBlock } from './field-block.ts';
import { Flag, type Frame, frame, PREFACE, ping, settings, Type, windowUpdate } from './frames.ts';

/** One section of fields that came, with its pseudo-fields. */
export class Section {
  readonly fields: readonly string[];

  constructor(fields: readonly string[]) {
    this.fields = fields;
  }

  values(name: string): string[] {
    return this.fields.filter((_, at) => at % 2 === 1 && this.fields[at - 1] === name);
  }

  value(name: string): string | undefined {
    return this.values(name)[0];
  }
}

/** What came on one stream. */
export interface Http2Answer {
  readonly interim: readonly Section[];
  readonly head: Section | undefined;
  readonly status: number;
  readonly body: string;
  readonly trailers: Section | undefined;
  /** Whether END_STREAM came. */
  readonly ended: boolean;
  /** Of RST_STREAM. */
  readonly reset: number | undefined;
}

class Arriving implements Http2Answer {
  readonly interim: Section[] = [];
  readonly chunks: Buffer[] = [];
  head: Section | undefined;
  status = 0;
  trailers: Section | undefined;
  ended = false;
  reset: number | undefined;

  get body(): string {
    return Buffer.concat(this.chunks).toString('latin1');
  }
}

export interface ClientOptions {
  readonly settings?: readonly (readonly [number, number])[];
  /** Gives windows back as data comes. */
  readonly updatesWindows?: boolean;
  /** Answers PING and acknowledges SETTINGS. */
  readonly answers?: boolean;
  /** Keeps the bodies that come; otherwise they are counted. */
  readonly keepsBodies?: boolean;
}

/** An app that speaks HTTP/2 by frames as the test gives them, and keeps what comes. */
export class RawHttp2Client {
  readonly socket: Socket;
  readonly received: ReceivedBytes;
  /** Every frame that came, in order; DATA without its payload if bodies are not kept. */
  readonly frames: Frame[] = [];
  /** Octets of DATA that came in all. */
  dataBytes = 0;
  readonly #options: ClientOptions;
  readonly #answers = new Map<number, Arriving>();
  #nextId = 1;
  #rest: Buffer = Buffer.alloc(0);
  #block: { streamId: number; endStream: boolean; parts: Buffer[] } | undefined;
  #waiting: (() => void)[] = [];
  #ending: Ending | undefined;

  constructor(socket: Socket, options: ClientOptions = {}) {
    this.socket = socket;
    this.#options = { updatesWindows: true, answers: true, keepsBodies: true, ...options };
    this.received = new ReceivedBytes(socket);
    this.received.discard();
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    void this.received.ended().then((ending) => {
      this.#ending = ending;
      this.#wake();
    });
  }

  /** Sends octets in one write. */
  send(...octets: Buffer[]): this {
    if (!this.socket.destroyed && !this.socket.writableEnded) this.socket.write(Buffer.concat(octets));
    return this;
  }

  /** Preface and SETTINGS. */
  start(): this {
    return this.send(PREFACE, settings(...(this.#options.settings ?? [])));
  }

  /** Sends a request, and gives its stream. */
  request(fields: readonly string[], { endStream = true } = {}): number {
    const streamId = this.#nextId;
    this.#nextId += 2;
    this.headers(streamId, fields, endStream);
    return streamId;
  }

  get(path: string, ...fields: string[]): number {
    return this.request(requestFields('GET', path, ...fields));
  }

  /** Begins a request with a body. */
  post(path: string, ...fields: string[]): number {
    return this.request(requestFields('POST', path, ...fields), { endStream: false });
  }

  headers(streamId: number, fields: readonly string[], endStream: boolean): this {
    const flags = Flag.END_HEADERS | (endStream ? Flag.END_STREAM : 0);
    return this.send(frame(Type.HEADERS, flags, streamId, writeBlock(fields)));
  }

  data(streamId: number, data: string | Buffer, endStream = false): this {
    return this.send(frame(Type.DATA, endStream ? Flag.END_STREAM : 0, streamId, data));
  }

  /** What has come on a stream so far. */
  soFar(streamId: number): Http2Answer {
    return this.#arriving(streamId);
  }

  /** The answer on a stream, once it has ended or was reset. */
  async answer(streamId: number): Promise<Http2Answer> {
    await this.until(
      () => this.soFar(streamId).ended || this.soFar(streamId).reset !== undefined,
      `${streamId}`,
    );
    return this.soFar(streamId);
  }

  /** The head of the final answer. */
  async head(streamId: number): Promise<Section> {
    await this.until(() => this.soFar(streamId).head !== undefined, `the head of ${streamId}`);
    return this.soFar(streamId).head as Section;
  }

  /** The first frame that came, or comes, of this type on this stream, and fits. */
  async frame(type: number, streamId = 0, fits: (frame: Frame) => boolean = () => true): Promise<Frame> {
    const find = () => this.frames.find((one) => one.type === type && one.streamId === streamId && fits(one));
    await this.until(() => find() !== undefined, `a frame of type ${type} on ${streamId}`);
    return find() as Frame;
  }

  /** Code of the RST_STREAM on a stream. */
  async resetCode(streamId: number): Promise<number> {
    return (await this.frame(Type.RST_STREAM, streamId)).payload.readUInt32BE(0);
  }

  /** Last stream and code of every GOAWAY that came. */
  get goaways(): { last: number; code: number }[] {
    return this.frames
      .filter(({ type }) => type === Type.GOAWAY)
      .map(({ payload }) => ({ last: payload.readUInt32BE(0), code: payload.readUInt32BE(4) }));
  }

  /** A round trip: whatever was sent before has been read, and what was said to it by then has come. */
  async fence(): Promise<void> {
    const opaque = `fence${String(this.#fences++).padStart(3, '0')}`;
    this.send(ping(opaque));
    await this.frame(
      Type.PING,
      0,
      ({ payload, flags }) => flags === Flag.ACK && payload.toString() === opaque,
    );
  }
  #fences = 0;

  /** Resolves when the sidecar has ended the connection. */
  async closed(): Promise<Ending> {
    return this.received.ended();
  }

  /** Resolves when the condition holds, which is looked at with every frame. */
  async until(condition: () => boolean, what = 'the condition'): Promise<void> {
    while (!condition()) {
      if (this.#ending !== undefined) {
        const seen = this.frames.map(({ type, streamId, flags }) => `${type}/${streamId}/${flags}`).join(' ');
        throw new Error(
          `${this.#ending} while waiting for ${what}; frames: ${seen} ${JSON.stringify(this.goaways)}`,
        );
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  #take(chunk: Buffer): void {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (this.#rest.length - at >= 9) {
      const length = this.#rest.readUIntBE(at, 3);
      if (this.#rest.length - at < 9 + length) break;
      const payload = Buffer.from(this.#rest.subarray(at + 9, at + 9 + length));
      const [type, flags] = [this.#rest[at + 3] as number, this.#rest[at + 4] as number];
      this.#heed({ type, flags, streamId: this.#rest.readUInt32BE(at + 5), payload });
      at += 9 + length;
    }
    this.#rest = Buffer.from(this.#rest.subarray(at));
    this.#wake();
  }

  #heed(came: Frame): void {
    const { type, flags, streamId, payload } = came;
    const isData = type === Type.DATA;
    this.frames.push(isData && !this.#options.keepsBodies ? { ...came, payload: Buffer.alloc(0) } : came);
    if (isData) {
      this.dataBytes += payload.length;
      const arriving = this.#arriving(streamId);
      if (this.#options.keepsBodies) arriving.chunks.push(payload);
      if (flags & Flag.END_STREAM) arriving.ended = true;
      if (this.#options.updatesWindows && payload.length > 0) {
        this.send(windowUpdate(0, payload.length));
        if (!arriving.ended) this.send(windowUpdate(streamId, payload.length));
      }
    } else if (type === Type.HEADERS) {
      this.#block = { streamId, endStream: (flags & Flag.END_STREAM) !== 0, parts: [payload] };
      if (flags & Flag.END_HEADERS) this.#section();
    } else if (type === Type.CONTINUATION) {
      this.#block?.parts.push(payload);
      if (flags & Flag.END_HEADERS) this.#section();
    } else if (type === Type.RST_STREAM) this.#arriving(streamId).reset = payload.readUInt32BE(0);
    else if (this.#options.answers && !(flags & Flag.ACK)) {
      if (type === Type.SETTINGS) this.send(frame(Type.SETTINGS, Flag.ACK, 0));
      if (type === Type.PING) this.send(frame(Type.PING, Flag.ACK, 0, payload));
    }
  }

  #section(): void {
    const block = this.#block;
    if (block === undefined) return;
    this.#block = undefined;
    const section = new Section(readBlock(Buffer.concat(block.parts)));
    const arriving = this.#arriving(block.streamId);
    const status = section.value(':status');
    if (status === undefined) arriving.trailers = section;
    else if (status.startsWith('1')) arriving.interim.push(section);
    else {
      arriving.head = section;
      arriving.status = Number(status);
    }
    if (block.endStream) arriving.ended = true;
  }

  #arriving(streamId: number): Arriving {
    let arriving = this.#answers.get(streamId);
    if (arriving === undefined) {
      arriving = new Arriving();
      this.#answers.set(streamId, arriving);
    }
    return arriving;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}

/** Fields of a request for `app.test`, with those given after them. */
export function requestFields(method: string, path: string, ...fields: string[]): string[] {
  return [':method', method, ':scheme', 'http', ':authority', 'app.test', ':path', path, ...fields];
}

/** A client whose preface and SETTINGS have been sent; it is destroyed when the test is over. */
export async function connectHttp2(
  { address }: { readonly address: { host: string; port: number } },
  options: ClientOptions = {},
): Promise<RawHttp2Client> {
  const { socket } = await connectClient(address);
  return new RawHttp2Client(socket, options).start();
}
