import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Exchange } from './exchange.ts';
import { fieldValues, informationFields } from './header-rules.ts';
import type { IdleBound } from './idle-bound.ts';

/** A client should wait for 101, but may not; this much of its haste is kept. */
const EARLY_BYTES = 64 * 1024;

/** The app's side of a connection that may become a tunnel: what it sends too early, and whether it is still there. */
export class EarlyBytes {
  readonly #socket: Duplex;
  readonly #chunks: Buffer[];
  #bytes: number;
  readonly #onData = (chunk: Buffer): void => {
    this.#chunks.push(chunk);
    this.#bytes += chunk.byteLength;
    if (this.#bytes > EARLY_BYTES) this.#socket.pause();
  };
  readonly #onEnd = (): void => {
    this.#socket.destroy();
  };

  /** `head` holds the bytes that came with the request head. */
  constructor(socket: Duplex, head: Buffer) {
    this.#socket = socket;
    this.#chunks = head.byteLength > 0 ? [head] : [];
    this.#bytes = head.byteLength;
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
  }

  /** Stops keeping, and gives what was kept. */
  take(): Buffer {
    this.#socket.pause();
    this.#socket.off('data', this.#onData);
    this.#socket.off('end', this.#onEnd);
    return Buffer.concat(this.#chunks);
  }
}

/**
 * Passes the upstream's 101 (RFC 9110 §15.2.2) to the app, and from then on bytes both ways. Each direction ends by
 * itself; a fault or an idle bound ends both.
 */
export function runTunnel(
  exchange: Exchange,
  early: EarlyBytes,
  message: IncomingMessage,
  upstream: Duplex,
  upstreamHead: Buffer,
  idle: IdleBound,
): void {
  const { socket } = exchange.connection;
  exchange.outgoing.detachSocket(socket);
  exchange.switchedProtocols();
  exchange.onAborted(() => {
    idle.stop();
    upstream.destroy();
  });
  upstream.on('error', () => socket.destroy());
  upstream.on('close', () => {
    // Ended both ways it closes in peace, what is still to be written to the app included.
    if (upstream.errored === null && upstream.readableEnded) socket.destroySoon();
    else socket.destroy();
  });

  socket.write(switchingHead(message), 'latin1');
  if (upstreamHead.byteLength > 0) socket.write(upstreamHead);
  const sent = early.take();
  if (sent.byteLength > 0) upstream.write(sent);

  const touch = (): void => idle.touch();
  socket.on('data', touch);
  upstream.on('data', touch);
  idle.start();
  socket.pipe(upstream);
  upstream.pipe(socket);
}

function switchingHead(message: IncomingMessage): string {
  const fields = informationFields(message.rawHeaders);
  const protocols = fieldValues(message.rawHeaders, 'upgrade').join(', ');
  fields.push('connection', 'upgrade', 'upgrade', protocols);
  let head = `HTTP/1.1 101 ${message.statusMessage ?? ''}\r\n`;
  for (let index = 0; index < fields.length; index += 2) head += `${fields[index]}: ${fields[index + 1]}\r\n`;
  return `${head}\r\n`;
}
