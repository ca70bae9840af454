import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import { TLSSocket } from 'node:tls';

/** As much as the system gives at once. */
const READ_BYTES = 64 * 1024;

/**
 * Where every socket of the data path reads to. Reads follow one another on the one thread, so one buffer serves them
 * all: no memory is allocated, and none has to be collected, for what a socket has to say.
 */
const SHARED = Buffer.allocUnsafeSlow(READ_BYTES);

/** Up to this length the view of what came is kept: heads and small answers are what comes most. */
const LONGEST_VIEW_BYTES = 4096;

const VIEWS: (Buffer | undefined)[] = new Array(LONGEST_VIEW_BYTES + 1).fill(undefined);

/** The first `length` bytes of the shared buffer. Making a view costs more than a small read has to say. */
function sharedView(length: number): Buffer {
  if (length > LONGEST_VIEW_BYTES) return SHARED.subarray(0, length);
  let view = VIEWS[length];
  if (view === undefined) {
    view = SHARED.subarray(0, length);
    VIEWS[length] = view;
  }
  return view;
}

/** Takes what came. The bytes are there until it returns: who wants to keep them copies them. */
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

/**
 * An accepted connection, read through `take`. Node's servers do not have the option that its clients have, so that the
 * connection is moved to a socket of our own; one over TLS, or on a Node that keeps it elsewhere, is read by events.
 */
export function acceptShared(accepted: Socket, take: TakeBytes): Socket {
  const shell = accepted as unknown as { _handle: unknown };
  const handle = shell._handle;
  if (handle === null || handle === undefined || accepted instanceof TLSSocket) {
    accepted.on('data', take).resume();
    return accepted;
  }
  shell._handle = null;
  accepted.destroy();
  const options = { handle, allowHalfOpen: true, onread: sharedRead(take) };
  return new Socket(options as SocketConstructorOpts);
}
