/**
 * A server that has enough of an upload after its first MB: it answers 413, and closes with bytes unread, so that its
 * system resets the connection. It prints its port: `refusing-program.ts http1|h2 [CERT KEY]`, both PEM.
 */

import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

const ENOUGH_BYTES = 1_000_000;
const BODY = 'too much';

const [protocol, cert, key] = process.argv.slice(2);
const http2 = protocol === 'h2';

/** SETTINGS with the largest window for each stream, and WINDOW_UPDATE for the connection (RFC 9113 §6.5, §6.9). */
const HELLO = Buffer.from(['00000604000000000000047fffffff', '0000040800000000007fff0000'].join(''), 'hex');

const REFUSAL_HTTP1 = `HTTP/1.1 413 Content Too Large\r\nContent-Length: ${BODY.length}\r\nConnection: close\r\n\r\n${BODY}`;

const REFUSAL_HTTP2 = Buffer.concat([
  // HEADERS: `:status: 413`, by the static table's name and a literal value.
  Buffer.from('0000050104000000014803343133', 'hex'),
  // DATA, which ends the stream.
  Buffer.from('000008000100000001', 'hex'),
  Buffer.from(BODY),
  // RST_STREAM and GOAWAY, both NO_ERROR.
  Buffer.from(['00000403000000000100000000', '0000080700000000000000000100000000'].join(''), 'hex'),
]);

function refuse(socket: Socket): void {
  let bytes = 0;
  socket.on('error', () => {});
  if (http2) socket.write(HELLO);
  const take = (piece: Buffer): void => {
    bytes += piece.length;
    if (bytes < ENOUGH_BYTES) return;
    socket.off('data', take);
    socket.pause();
    socket.write(http2 ? REFUSAL_HTTP2 : REFUSAL_HTTP1, () => socket.destroy());
  };
  socket.on('data', take);
}

const server =
  cert === undefined || key === undefined
    ? createServer(refuse)
    : createTlsServer({ cert, key, ALPNProtocols: [http2 ? 'h2' : 'http/1.1'] }, refuse);
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
