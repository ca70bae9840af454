import type { Socket } from 'node:net';
import { http } from './node-http.ts';

/** A body may come in so many pieces, whatever their size, */
const ANY_PIECES = 64;

/** and in one more for each of these, in bytes. */
const PIECE_BYTES = 256;

/**
 * A request to a server of Node's, as its option `IncomingMessage`. Node makes a piece of each chunk and of each record of TLS, and
 * keeps it until it is read: one octet takes 300 bytes and a microsecond. A body in more pieces than it may have ends its connection.
 */
export class BoundedRequest extends http.IncomingMessage {
  #pieces = 0;
  #bytes = 0;

  override push(piece: Buffer | null): boolean {
    if (this.destroyed) return false;
    if (piece === null) return super.push(piece);
    this.#pieces += 1;
    this.#bytes += piece.length;
    if (this.#pieces <= ANY_PIECES + this.#bytes / PIECE_BYTES) return super.push(piece);
    tellNoMore(this.socket);
    this.destroy(new Error(`the body came in ${this.#pieces} pieces of ${this.#bytes} bytes together`));
    return false;
  }
}

/** Node's parser of a connection. Its callbacks stand in it by number; it makes no piece for one that is not there. */
interface Parser {
  [callback: number]: unknown;
  readonly constructor: { readonly kOnBody?: number };
}

/** What has come already may be 10 000 pieces more. The parser serves another connection once this one is closed. */
function tellNoMore(socket: Socket & { readonly parser?: Parser | null }): void {
  const { parser } = socket;
  const onBody = parser?.constructor.kOnBody;
  if (!parser || onBody === undefined) return;
  const callback = parser[onBody];
  parser[onBody] = undefined;
  socket.once('close', () => {
    parser[onBody] = callback;
  });
}
