import { type BodyDecoder, bodyDecoder } from '../../../src/proxy/http1/body-decoder.ts';
import type { FieldLines as Fields, HeadLimits } from '../../../src/proxy/http1/field-section.ts';
import { requestHeadReader, responseHeadReader } from '../../../src/proxy/http1/head-reader.ts';
import { type BodyFraming, frameResponse } from '../../../src/proxy/http1/heads.ts';
import { type MessageKind, ParseError, type RefusalReason } from '../../../src/proxy/http1/parse-error.ts';

export const LIMITS: HeadLimits = { headerBytes: 16_384, headerCount: 100, targetBytes: 8192 };

export interface Message {
  /** `GET /path` or `200 OK`. */
  readonly start: string;
  readonly minorVersion: number;
  readonly fields: Fields;
  /** Body octets as latin1, as far as they came. */
  body: string;
  trailers: Fields;
  complete: boolean;
}

/** What a parser made of one direction of a connection. */
export interface Transcript {
  readonly messages: readonly Message[];
  /**
   * How it ended: waiting for more, refused, closed after a message that allows no other, or handed over to another
   * protocol.
   */
  readonly end: 'open' | 'refused' | 'closed' | 'tunnel';
  /** Why it was refused, in the parser's own words. */
  readonly reason?: RefusalReason | string;
}

export interface Stream {
  readonly kind: MessageKind;
  readonly pieces: readonly Buffer[];
  /** The method that every answer of a response stream answers. */
  readonly requestMethod?: string;
}

/** Reads a connection's octets through the codec as the proxy does, up to the connection's end. */
export function transcribe(stream: Stream, limits: HeadLimits = LIMITS): Transcript {
  const messages: Message[] = [];
  try {
    return { messages, end: read(stream, limits, messages) };
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    return { messages, end: 'refused', reason: error.reason };
  }
}

function read(stream: Stream, limits: HeadLimits, messages: Message[]): Transcript['end'] {
  const readHead = headParser(stream, limits);
  let body: BodyDecoder | undefined;
  let message: Message | undefined;
  let persistent = true;
  let endsWithConnection = false;

  for (const octets of stream.pieces) {
    // What was read is overwritten, as it is in a buffer that is read into again and again.
    const piece = Buffer.from(octets);
    let at = 0;
    while (at < piece.length) {
      if (body === undefined || message === undefined) {
        if (!persistent) return 'closed';
        const { head, position } = readHead(piece, at);
        at = position;
        if (head === undefined) continue;
        message = head.message;
        messages.push(message);
        persistent = head.persistent;
        if (head.framing.kind === 'tunnel') {
          message.complete = true;
          return 'tunnel';
        }
        endsWithConnection = head.framing.kind === 'close';
        body = bodyDecoder(stream.kind, head.framing, limits);
      } else {
        const data = body.read(piece, at);
        at = body.position;
        if (data !== undefined) message.body += data.toString('latin1');
      }
      if (body.complete) {
        message.complete = true;
        message.trailers = body.trailers;
        body = undefined;
      }
    }
    piece.fill(0xee);
  }
  if (endsWithConnection && body !== undefined && message !== undefined) {
    body.end();
    message.complete = body.complete;
    return 'closed';
  }
  return body === undefined && !persistent ? 'closed' : 'open';
}

interface ParsedHead {
  readonly message: Message;
  readonly framing: BodyFraming;
  readonly persistent: boolean;
}

type ParseHead = (piece: Buffer, at: number) => { head: ParsedHead | undefined; position: number };

function headParser(stream: Stream, limits: HeadLimits): ParseHead {
  if (stream.kind === 'request') {
    const reader = requestHeadReader(limits);
    return (piece, at) => {
      const head = reader.read(piece, at);
      const { position } = reader;
      if (head === undefined) return { head, position };
      const { method, target, minorVersion, fields, framing, persistent } = head;
      const tunnels: BodyFraming = method === 'CONNECT' ? { kind: 'tunnel' } : framing;
      return {
        head: { message: started(`${method} ${target}`, minorVersion, fields), framing: tunnels, persistent },
        position,
      };
    };
  }
  const reader = responseHeadReader(limits);
  return (piece, at) => {
    const head = reader.read(piece, at);
    const { position } = reader;
    if (head === undefined) return { head, position };
    const { status, reason, minorVersion, fields, persistent } = head;
    const framing = frameResponse(head, stream.requestMethod ?? 'GET');
    return {
      head: {
        message: started(`${status} ${reason}`, minorVersion, fields),
        framing,
        persistent,
      },
      position,
    };
  };
}

export function started(start: string, minorVersion: number, fields: Fields): Message {
  return { start, minorVersion, fields, body: '', trailers: [], complete: false };
}

/** One piece holding the octets of a latin1 text. */
export function octets(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

/** Cuts at every one of `cuts`, in any order; cuts beyond the end or at the same place make empty pieces at most. */
export function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const sorted = [...cuts].map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b);
  const pieces: Buffer[] = [];
  let start = 0;
  for (const cut of [...sorted, bytes.length]) {
    pieces.push(bytes.subarray(start, cut));
    start = cut;
  }
  return pieces;
}

/** Reads a request stream that comes in one piece. */
export function readRequests(text: string, limits?: HeadLimits): Transcript {
  return transcribe({ kind: 'request', pieces: [octets(text)] }, limits);
}

/** Reads answers to requests of one method that come in one piece, up to the connection's end. */
export function readResponses(text: string, requestMethod = 'GET', limits?: HeadLimits): Transcript {
  return transcribe({ kind: 'response', requestMethod, pieces: [octets(text)] }, limits);
}
