import type { Socket } from 'node:net';
import { http } from './node-http.ts';

/** A body may come in so many pieces of any size, */
const ANY_PIECES = 64;

/** and one more for each so many bytes. */
const PIECE_BYTES = 256;

/**
 * For Node's option `IncomingMessage`. Node keeps each chunk or TLS record until it is read: a piece of one octet takes
 * 300 bytes and a microsecond. Too many pieces end the connection.
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

/** Node's parser makes no piece if the callback is missing. */
interface Parser {
  [callback: number]: unknown;
  readonly constructor: { readonly kOnBody?: number };
}

/** Up to 10 000 pieces may have come. The parser is reused after this connection. */
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
