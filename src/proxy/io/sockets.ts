/** How sockets are read, how they end, and what a failed write leaves of them. */

import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { TLSSocket } from 'node:tls';
import { systemCodeOf } from '../../platform/errors.ts';

/** Clients like to send 64 KiB at once, after a head. */
const READ_BYTES = 80 * 1024;

/** Every socket of the data path reads into it, so that reading allocates nothing. */
const SHARED = Buffer.allocUnsafeSlow(READ_BYTES);

/** Heads and small answers are the most common reads. */
const MAX_VIEW_BYTES = 4096;

const VIEWS: (Buffer | undefined)[] = new Array(MAX_VIEW_BYTES + 1).fill(undefined);

/** Making a view costs more than handling a small read. */
function sharedView(length: number): Buffer {
  if (length > MAX_VIEW_BYTES) return SHARED.subarray(0, length);
  let view = VIEWS[length];
  if (view === undefined) {
    view = SHARED.subarray(0, length);
    VIEWS[length] = view;
  }
  return view;
}

/** The bytes are valid until it returns: copy them to keep them. */
export type TakeBytes = (chunk: Buffer) => void;

export function sharedRead(take: TakeBytes): OnReadOpts {
  return {
    buffer: SHARED,
    callback(length) {
      take(sharedView(length));
      return true;
    },
  };
}

/** Where Node's sockets keep the `onread` option. */
interface ReadParts {
  readonly buffer: symbol;
  readonly callback: symbol;
}

const READ_PARTS = findReadParts();

/**
 * Whether accepted connections are read into the shared buffer, too. If not, they cost more and work as well.
 */
export const sharesAcceptedReads = READ_PARTS !== undefined;

/** Undefined if this Node keeps them elsewhere. */
function findReadParts(): ReadParts | undefined {
  const socket = new Socket(sharedSocket());
  const symbols = Object.getOwnPropertySymbols(socket);
  const [buffer, callback] = ['kBuffer', 'kBufferCb'].map((name) =>
    symbols.find((symbol) => symbol.description === name),
  );
  socket.destroy();
  if (buffer === undefined || callback === undefined) return undefined;
  const kept = socket as unknown as Record<symbol, unknown>;
  return kept[buffer] === SHARED && typeof kept[callback] === 'function' ? { buffer, callback } : undefined;
}

function sharedSocket(): SocketConstructorOpts {
  return { onread: sharedRead(() => {}) } as SocketConstructorOpts;
}

/**
 * Reads an accepted connection through `take`. Node's servers lack `onread`, so it is set where Node keeps
 * it; if that fails, or over TLS, events are used.
 * @param accepted just now: nothing of it has been read
 */
export function acceptShared(accepted: Socket, take: TakeBytes): void {
  const handle = (accepted as unknown as { _handle?: { useUserBuffer?(buffer: Buffer): void } | null })
    ._handle;
  if (READ_PARTS === undefined || accepted instanceof TLSSocket || handle?.useUserBuffer === undefined) {
    accepted.on('data', take);
    return;
  }
  const { buffer, callback } = sharedRead(take);
  const parts = accepted as unknown as Record<symbol, unknown>;
  parts[READ_PARTS.buffer] = buffer;
  parts[READ_PARTS.callback] = callback;
  handle.useUserBuffer(SHARED);
}

/** Resets a connection amid what was written: a clean end would say that this is all. */
export function cutOff(socket: Socket): void {
  // A missing close_notify says so, too (RFC 8446 §6.1).
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Ends a connection at once, cleanly only if the system has taken all that was written. */
export function dropConnection(socket: Socket): void {
  if (socket.writableLength > 0) cutOff(socket);
  else socket.destroy();
}

/** Errors of writes after the peer has closed. */
const PEER_GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET']);

type Done = (error?: Error | null) => void;

/**
 * Keeps a socket readable when a write fails because the peer has closed: a server that refuses an upload may
 * answer and reset the connection, and Node would drop the answer. The socket learns of the failure once
 * reading has ended; until then writes are dropped.
 */
export class FailedWrite {
  #happened = false;

  /** @param socket with no write under way. */
  constructor(socket: Socket) {
    const { _write: write, _writev: writev } = socket;
    // A stream has one write under way at a time.
    let done: Done = () => {};
    const written: Done = (error) => {
      if (error instanceof Error && PEER_GONE.has(systemCodeOf(error))) {
        this.#happened = true;
        afterReading(socket, () => done(error));
      } else {
        done(error);
      }
    };
    socket._write = (chunk, encoding, callback) => {
      done = callback;
      write.call(socket, chunk, encoding, written);
    };
    // A stream that has none says null.
    if (!writev) return;
    socket._writev = (chunks, callback) => {
      done = callback;
      writev.call(socket, chunks, written);
    };
  }

  /** Then nothing leaves any more. */
  get happened(): boolean {
    return this.#happened;
  }
}

/** Calls back before others hear of the end of what the peer sent, or once the socket has closed. */
function afterReading(socket: Socket, callback: () => void): void {
  if (socket.readableEnded) {
    callback();
    return;
  }
  const ended = (): void => {
    socket.off('end', ended);
    socket.off('close', ended);
    callback();
  };
  socket.prependListener('end', ended);
  socket.on('close', ended);
}
