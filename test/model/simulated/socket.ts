import type { OnReadOpts } from 'node:net';
import { Duplex } from 'node:stream';
import type { PeerEnd } from '../world.ts';
import type { Turns } from './turns.ts';

/** What a peer that does not read leaves to the network before the writer has to wait. */
const WINDOW_BYTES = 64 * 1024;

/** As much as is read at once. */
const READ_BYTES = 64 * 1024;

/** What TLS deciphers at once. */
const RECORD_BYTES = 16 * 1024;

type Incoming = Buffer | 'end' | 'reset';

export interface SimulatedSocketOptions {
  readonly id: number;
  readonly turns: Turns;
  readonly transport: 'plain' | 'tls';
  readonly onread?: OnReadOpts | undefined;
  /** Made already, as an accepted one. */
  readonly connected: boolean;
}

/**
 * The data path's end of a simulated connection: a Duplex with what `net.Socket` has beside it, and its manners.
 * A read takes all that has come. Of TLS everything that was read is deciphered and passed on, the end included, though
 * the socket is paused meanwhile. 'close' comes at the end of the turn, after what else has come in it.
 */
export class SimulatedSocket extends Duplex {
  readonly id: number;
  readonly remotePort: number;
  readonly localPort: number;
  readonly remoteAddress = '127.0.0.1';
  readonly localAddress = '127.0.0.1';
  readonly encrypted: boolean;
  readonly authorized: boolean;
  alpnProtocol: string | false = false;
  connecting: boolean;
  bytesRead = 0;
  bytesWritten = 0;
  readonly peer: SimulatedPeer;
  readonly #turns: Turns;
  readonly #transport: 'plain' | 'tls';
  readonly #onread: OnReadOpts | undefined;
  readonly #incoming: Incoming[] = [];
  #reading = false;
  #readDue = false;
  #whenConnected: (() => void)[] = [];

  constructor({ id, turns, transport, onread, connected }: SimulatedSocketOptions) {
    super({ allowHalfOpen: true, emitClose: false, autoDestroy: true });
    this.id = id;
    this.localPort = 10_000 + id;
    this.remotePort = 40_000 + id;
    this.encrypted = transport === 'tls';
    this.authorized = this.encrypted;
    this.connecting = !connected;
    this.#turns = turns;
    this.#transport = transport;
    this.#onread = onread;
    this.#reading = !connected;
    this.peer = new SimulatedPeer(this, turns);
  }

  getProtocol(): string {
    return 'TLSv1.3';
  }

  /** Each handshake is a whole one. */
  isSessionReused(): boolean {
    return false;
  }

  /** The connection stands. */
  connected(): void {
    if (this.destroyed) return;
    this.connecting = false;
    for (const go of this.#whenConnected.splice(0)) go();
    this.emit('connect');
    this.#readLater();
  }

  secured(): void {
    if (!this.destroyed) this.emit('secureConnect');
  }

  get pending(): boolean {
    return this.connecting;
  }

  get readyState(): string {
    if (this.connecting) return 'opening';
    if (this.readable) return this.writable ? 'open' : 'readOnly';
    return this.writable ? 'writeOnly' : 'closed';
  }

  /** From the peer. */
  receive(what: Incoming): void {
    if (this.destroyed) return;
    this.#incoming.push(what);
    this.#readLater();
  }

  get unread(): boolean {
    return this.#incoming.some((what) => what !== 'end');
  }

  override pause(): this {
    this.#reading = false;
    return this;
  }

  override resume(): this {
    this.#reading = true;
    this.#readLater();
    return this;
  }

  override isPaused(): boolean {
    return !this.#reading;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  setTimeout(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  address(): object {
    return { address: this.localAddress, family: 'IPv4', port: this.localPort };
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  resetAndDestroy(): this {
    this.peer.receive('reset');
    return this.destroy();
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#onceConnected(() => {
      this.bytesWritten += chunk.length;
      this.peer.take(Buffer.from(chunk), done);
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#onceConnected(() => {
      this.peer.receive('end');
      done();
    });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // What the data path leaves unread makes the system reset the connection.
    this.peer.receive(this.unread || error !== null ? 'reset' : 'end');
    this.peer.orphan();
    this.#incoming.length = 0;
    this.#turns.closing(() => this.emit('close', error !== null));
    done(error);
  }

  #onceConnected(go: () => void): void {
    if (this.connecting) this.#whenConnected.push(go);
    else go();
  }

  #readLater(): void {
    if (this.#readDue || !this.#reading || this.connecting || this.#incoming.length === 0) return;
    this.#readDue = true;
    // What else comes until then is read with it.
    this.#turns.deliver(() => this.#read());
  }

  #read(): readonly (() => undefined)[] | undefined {
    this.#readDue = false;
    if (!this.#reading || this.destroyed) return undefined;
    if (this.#transport === 'tls') {
      return this.#incoming.splice(0).map((record) => () => this.#pass(record));
    }
    const next = Buffer.isBuffer(this.#incoming[0]) ? this.#takeBytes() : this.#incoming.shift();
    if (next !== undefined) this.#pass(next);
    this.#readLater();
    return undefined;
  }

  /** As many of the bytes that have come as one read takes. */
  #takeBytes(): Buffer {
    const taken: Buffer[] = [];
    let room = READ_BYTES;
    while (room > 0 && Buffer.isBuffer(this.#incoming[0])) {
      const next = this.#incoming.shift() as Buffer;
      taken.push(next.subarray(0, room));
      if (next.length > room) this.#incoming.unshift(next.subarray(room));
      room -= Math.min(room, next.length);
    }
    return Buffer.concat(taken);
  }

  #pass(what: Incoming): undefined {
    if (this.destroyed) return;
    if (what === 'end') {
      this.push(null);
      this.read(0);
    } else if (what === 'reset') {
      this.destroy(systemError('ECONNRESET'));
    } else {
      const most = this.#transport === 'tls' ? RECORD_BYTES : READ_BYTES;
      for (let at = 0; at < what.length && !this.destroyed; at += most) {
        this.#passBytes(what.subarray(at, at + most));
      }
    }
  }

  #passBytes(bytes: Buffer): void {
    this.bytesRead += bytes.length;
    // What was read is overwritten by the next read: who keeps it copies it.
    if (this.#onread === undefined) {
      const lent = Buffer.from(bytes);
      this.emit('data', lent);
      lent.fill('?');
      return;
    }
    const { buffer, callback } = this.#onread;
    const target = typeof buffer === 'function' ? buffer() : buffer;
    target.set(bytes);
    if (!callback(bytes.length, target)) this.#reading = false;
    target.fill(0x3f, 0, bytes.length);
  }
}

/** The peer's end. What it does reaches the data path in the next turn. */
export class SimulatedPeer implements PeerEnd {
  onBytes: (bytes: Buffer) => void = () => {};
  onEnd: (how: 'ended' | 'reset') => void = () => {};
  readonly id: number;
  readonly #socket: SimulatedSocket;
  readonly #turns: Turns;
  /** `gone` has no process behind it any more. */
  #state: 'ended' | 'gone' | 'open' = 'open';
  #reading = true;
  #unread: { readonly bytes: Buffer; readonly done: () => undefined }[] = [];
  #unreadBytes = 0;
  #told = false;
  #toTell: 'ended' | 'reset' | undefined;
  #orphaned = false;

  constructor(socket: SimulatedSocket, turns: Turns) {
    this.id = socket.id;
    this.#socket = socket;
    this.#turns = turns;
  }

  get isGone(): boolean {
    return this.#state === 'gone';
  }

  write(bytes: Buffer): void {
    if (this.#state === 'open') this.#socket.receive(bytes);
  }

  end(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ended';
    this.#socket.receive('end');
  }

  close(): void {
    if (this.#state === 'gone') return;
    const unread = this.#unread.length > 0;
    if (this.#state === 'open') this.#socket.receive(unread ? 'reset' : 'end');
    this.#leave();
  }

  reset(): void {
    if (this.#state === 'gone') return;
    this.#socket.receive('reset');
    this.#leave();
  }

  pause(): void {
    this.#reading = false;
  }

  resume(): void {
    this.#reading = true;
    if (this.#unread.length > 0 || this.#toTell !== undefined) this.#turns.deliver(() => this.#readOn());
  }

  /** From the data path; `done` when there is room for more. */
  take(bytes: Buffer, done: () => void): void {
    if (this.isGone) {
      // A system whose process is gone answers with a reset.
      this.#socket.receive('reset');
      done();
      return;
    }
    this.#unreadBytes += bytes.length;
    if (this.#unreadBytes <= WINDOW_BYTES) {
      this.#unread.push({ bytes, done: () => undefined });
      done();
    } else {
      this.#unread.push({ bytes, done: () => void done() });
    }
    this.#turns.deliver(() => this.#readOn());
  }

  /** From the data path. */
  receive(how: 'end' | 'reset'): void {
    if (this.#told || this.isGone) return;
    this.#toTell ??= how === 'end' ? 'ended' : 'reset';
    this.#turns.deliver(() => this.#readOn());
  }

  /** The data path has given its end up. */
  orphan(): void {
    this.#orphaned = true;
  }

  #readOn(): undefined {
    if (!this.#reading || this.isGone) return;
    for (const { bytes, done } of this.#unread.splice(0)) {
      this.#unreadBytes -= bytes.length;
      this.onBytes(bytes);
      if (!this.#orphaned) done();
    }
    const how = this.#toTell;
    // What was written meanwhile comes before the end.
    if (how === undefined || this.#told || this.#unread.length > 0) return;
    this.#told = true;
    this.onEnd(how);
  }

  #leave(): void {
    this.#state = 'gone';
    // Whoever waits for room waits no longer: the reset is on its way.
    for (const { done } of this.#unread.splice(0)) if (!this.#orphaned) this.#turns.deliver(done);
  }
}

function systemError(code: string): Error {
  return Object.assign(new Error(`read ${code}`), { code, syscall: 'read' });
}
