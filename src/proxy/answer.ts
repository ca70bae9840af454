import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../clock.ts';
import { SidecarError } from '../errors.ts';
import type { Exchange } from './exchange.ts';
import { answerFields, fieldValues, trailerFields } from './header-rules.ts';
import type { IdleBound } from './idle-bound.ts';
import { trailerPairs } from './request-body.ts';

/** Larger ones cost more to read to their end than a new connection does. */
const WORTH_DRAINING_BYTES = 64 * 1024;
const WORTH_DRAINING_MS = 1_000;

/**
 * Passes the upstream's final answer on to the app as it comes, no faster than the app reads. An answer that breaks
 * off is cut, never ended.
 * @throws {SidecarError} `upstream_protocol_error` when its head cannot be passed on; nothing has been sent then.
 */
export function deliverAnswer(message: IncomingMessage, exchange: Exchange, idle: IdleBound): void {
  checkAnswerFraming(message);
  const { outgoing, incoming } = exchange;
  const status = message.statusCode ?? 0;
  const bodiless = incoming.method === 'HEAD' || status === 204 || status === 205 || status === 304;
  const known = fieldValues(message.rawHeaders, 'content-length').length > 0;
  const chunked = !bodiless && !known && incoming.httpVersion === '1.1';
  const fields = answerFields(message.rawHeaders, { status, chunked });
  if (status === 205) fields.push('content-length', '0');
  if (chunked) fields.push('transfer-encoding', 'chunked');
  try {
    exchange.writeHead(status, message.statusMessage, fields);
  } catch (error) {
    throw new SidecarError('upstream_protocol_error', 'the upstream sent a head that is not valid HTTP/1.1', {
      cause: error,
    });
  }

  if (!bodiless && !known && !chunked) exchange.delimitByClose();
  idle.start();
  if (bodiless) message.resume();
  else copyBody(message, outgoing, idle);
  message.on('end', () => {
    // Node takes a reset for the end of an answer that has no other.
    if (message.socket?.errored) {
      exchange.cut();
      return;
    }
    const trailers = chunked ? trailerFields(message.rawTrailers) : [];
    if (trailers.length > 0) outgoing.addTrailers(trailerPairs(trailers));
    outgoing.end();
  });
  message.on('error', () => exchange.cut());
  message.on('close', () => {
    if (!message.readableEnded) exchange.cut();
  });
  if (message.destroyed) exchange.cut();
}

/** Reads an answer that nobody will see to its end if that is near, so that its connection can be used again. */
export function discardAnswer(message: IncomingMessage, clock: Clock): void {
  let bytes = 0;
  const cancel = clock.after(WORTH_DRAINING_MS, () => message.destroy());
  message.on('close', cancel);
  message.on('error', () => message.destroy());
  message.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > WORTH_DRAINING_BYTES) message.destroy();
  });
}

function copyBody(message: IncomingMessage, outgoing: ServerResponse, idle: IdleBound): void {
  message.on('data', (chunk: Buffer) => {
    idle.touch();
    if (!outgoing.write(chunk)) message.pause();
  });
  outgoing.on('drain', () => {
    idle.touch();
    message.resume();
  });
  // The head leaves with the first bytes if they are here, else alone: events and long polls wait for nothing.
  setImmediate(() => {
    if (!outgoing.destroyed) outgoing.flushHeaders();
  });
}

/** Codings that this hop does not undo would reach the app as if they were the content (RFC 9112 §6.1). */
function checkAnswerFraming(message: IncomingMessage): void {
  if (message.httpVersion !== '1.1' && message.httpVersion !== '1.0') {
    throw new SidecarError('upstream_protocol_error', 'the upstream answered in another version of HTTP');
  }
  const codings = fieldValues(message.rawHeaders, 'transfer-encoding');
  if (codings.length === 0) return;
  const exact = codings.length === 1 && codings[0]?.toLowerCase() === 'chunked';
  if (!exact || message.httpVersion !== '1.1') {
    throw new SidecarError(
      'upstream_protocol_error',
      'the upstream sent a transfer coding other than chunked, or one in HTTP/1.0',
    );
  }
}
