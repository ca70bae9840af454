import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { TLSSocket } from 'node:tls';
import { systemCodeOf } from '../../platform/errors.ts';

/** A head, and 64 KiB as clients like to send. */
const READ_BYTES = 80 * 1024;

/** Sockets of the data path share it, so that reading allocates nothing. */
const SHARED = Buffer.allocUnsafeSlow(READ_BYTES);

/** Most reads are no longer. */
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

/** Copy bytes to keep them beyond the call. */
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

interface ReadParts {
  readonly buffer: symbol;
  readonly callback: symbol;
}

const READ_PARTS = findReadParts();

/** If not, accepted connections cost more and work as well. */
export const sharesAcceptedReads = READ_PARTS !== undefined;

/** Undefined if Node keeps them elsewhere. */
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
 * Node's servers lack `onread`: it is set where Node keeps it. Over TLS, or if that fails, events are used.
 * @param accepted and not read yet
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

/** A clean end would say that this is all. */
export function cutOff(socket: Socket): void {
  // So does a missing close_notify (RFC 8446 §6.1).
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Cleanly only if the system has taken all that was written. */
export function dropConnection(socket: Socket): void {
  if (socket.writableLength > 0) cutOff(socket);
  else socket.destroy();
}

const PEER_GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET']);

type Done = (error?: Error | null) => void;

/**
 * Keeps a socket readable when a write fails because the peer has closed: a server that refuses an upload may
 * answer and reset, and Node would drop the answer. The socket learns of the failure after reading; until
 * then writes are dropped.
 */
export class FailedWrite {
  #happened = false;

  /** @param socket with no write under way. */
  constructor(socket: Socket) {
    const { _write: write, _writev: writev } = socket;
    // At most one write is under way.
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
    if (!writev) return;
    socket._writev = (chunks, callback) => {
      done = callback;
      writev.call(socket, chunks, written);
    };
  }

  /** If so, nothing leaves any more. */
  get happened(): boolean {
    return this.#happened;
  }
}

/** Calls back before others hear of the end, or once the socket has closed. */
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
