import type { Socket } from 'node:net';
import { systemCodeOf } from '../../platform/errors.ts';

/** What a write fails with once the peer has closed the connection. */
const PEER_GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET']);

type Done = (error?: Error | null) => void;

/**
 * Keeps a socket open for reading when a write to it fails because the peer has closed. A server that refuses an upload
 * answers and closes with bytes unread, and its system resets the connection: the answer has come by then, and Node
 * would drop it with the socket. So the socket is told of the failure once reading has ended, as of any error. Until
 * then it takes what it has room for, and sends nothing.
 */
export class FailedWrite {
  #happened = false;

  /** @param socket of which no write is under way. */
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

  /** Whether a write has failed: nothing leaves any more. */
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
