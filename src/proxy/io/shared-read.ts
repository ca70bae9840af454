import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { TLSSocket } from 'node:tls';

/** 64 KiB, as clients like to send at once, and the head before them: read and passed on in one piece. */
const READ_BYTES = 80 * 1024;

/**
 * The buffer that every socket of the data path reads into. Reads follow one another on the one thread, so one buffer
 * serves them all: reading allocates nothing that would have to be collected.
 */
const SHARED = Buffer.allocUnsafeSlow(READ_BYTES);

/** Views up to this length are kept: heads and small answers are the most common reads. */
const MAX_VIEW_BYTES = 4096;

const VIEWS: (Buffer | undefined)[] = new Array(MAX_VIEW_BYTES + 1).fill(undefined);

/** The first `length` bytes of the shared buffer. Making a view costs more than handling a small read. */
function sharedView(length: number): Buffer {
  if (length > MAX_VIEW_BYTES) return SHARED.subarray(0, length);
  let view = VIEWS[length];
  if (view === undefined) {
    view = SHARED.subarray(0, length);
    VIEWS[length] = view;
  }
  return view;
}

/** Takes what came. The bytes are valid until it returns: copy them to keep them. */
export type TakeBytes = (chunk: Buffer) => void;

/** The `onread` option of a socket that is to be read through `take`. */
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

/** Whether accepted connections are read like dialled ones. If not, they cost more and work as well. */
export const sharesAcceptedReads = READ_PARTS !== undefined;

/** Undefined on a Node that keeps them elsewhere. */
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
 * Reads an accepted connection through `take`. Node's servers lack the option that its clients have, so it is set where
 * Node keeps it; a connection over TLS, or on a Node that keeps it elsewhere, is read by events.
 * @param accepted just now, so that nothing of it has been read
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
