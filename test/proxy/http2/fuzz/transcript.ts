/** What a reader makes of an HTTP/2 connection, in terms that all readers share. */

import { ClientConnection } from '../../../../src/proxy/http2/client-connection.ts';
import type { StreamHandler } from '../../../../src/proxy/http2/connection-output.ts';
import type { ConnectionFault } from '../../../../src/proxy/http2/errors.ts';
import type { Fields } from '../../../../src/proxy/http2/fields.ts';
import { ServerConnection } from '../../../../src/proxy/http2/server-connection.ts';
import { PREFACE } from '../../../../src/proxy/http2/settings.ts';
import type { Stream } from '../../../../src/proxy/http2/streams.ts';
import { LIMITS } from '../endpoint.ts';
import { readFrames } from '../frames.ts';
import type { FuzzCase } from './connection-grammar.ts';

export interface Message {
  /** Heads of interim answers, then of the message, in canonical form. */
  readonly heads: string[];
  data: string;
  trailers: string | undefined;
  ended: boolean;
  /** The sender reset it. Node does not always tell that from an end. */
  reset?: boolean;
}

export interface Transcript {
  readonly messages: Map<number, Message>;
  /** Streams that the reader reset, and why. */
  readonly refused: Map<number, string>;
  /** Why the reader ended the connection. */
  refusal: string | undefined;
}

/** Conversations have as many streams open as their requests, which nobody answers here. */
const MANY_STREAMS = { ...LIMITS, maxStreams: 1000 };

export function newTranscript(): Transcript {
  return { messages: new Map(), refused: new Map(), refusal: undefined };
}

export function messageOf(transcript: Transcript, streamId: number): Message {
  let message = transcript.messages.get(streamId);
  if (message === undefined) {
    message = { heads: [], data: '', trailers: undefined, ended: false };
    transcript.messages.set(streamId, message);
  }
  return message;
}

/**
 * The fields of a head in the form in which the codec passes them on: pseudo-fields apart from their order, `host` as
 * the authority, a length once and without zeros before it, and none where there can be no body.
 */
export function canonicalHead(fields: Fields): string {
  const pseudo = new Map<string, string>();
  const others: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] as string;
    let value = fields[at + 1] as string;
    if (name.startsWith(':')) {
      pseudo.set(name, name === ':scheme' ? value.toLowerCase() : value);
      continue;
    }
    if (name === 'host') {
      if (!pseudo.has(':authority')) pseudo.set(':authority', value);
      if (!pseudo.has(':status')) continue;
    }
    if (name === 'content-length') {
      value = value.replace(/^0+(?=\d)/, '');
      if (/^(?:1..|204)$/.test(pseudo.get(':status') ?? '')) continue;
      if (others.some((other, index) => index % 2 === 0 && other === name)) continue;
    }
    others.push(name, value);
  }
  return JSON.stringify([[...pseudo].sort(), others]);
}

/** Reads the frames of a case through the codec, in pieces. */
export function transcribe({ sender, asked }: FuzzCase, pieces: readonly Buffer[]): Transcript {
  const transcript = newTranscript();
  const handler = <S extends Stream>(consume: (stream: S, bytes: number) => void): StreamHandler<S> => ({
    data(stream, data, endStream) {
      const message = messageOf(transcript, stream.id);
      message.data += data.toString('latin1');
      message.ended ||= endStream;
      consume(stream, data.length);
    },
    trailers(stream, fields) {
      const message = messageOf(transcript, stream.id);
      message.trailers = JSON.stringify(fields);
      message.ended = true;
    },
    broken(stream, how) {
      if (how.kind === 'reset') messageOf(transcript, stream.id).reset = true;
    },
    writable() {},
    goaway() {},
    pong() {},
  });
  const fault = sender === 'client' ? readAsServer() : readAsClient();
  transcript.refusal = fault?.reason;
  return transcript;

  function readAsServer(): ConnectionFault | undefined {
    const connection: ServerConnection<never> = new ServerConnection(MANY_STREAMS, {
      ...handler((stream, bytes) => connection.consume(stream, bytes)),
      malformed() {},
      request(stream, request, endStream) {
        const pseudo = Object.entries(request).flatMap(([name, value]) =>
          ['method', 'scheme', 'authority', 'path', 'protocol'].includes(name)
            ? [`:${name}`, value as string]
            : [],
        );
        const message = messageOf(transcript, stream.id);
        message.heads.push(canonicalHead([...pseudo, ...request.fields]));
        message.ended = endStream;
      },
      refused(stream, reason) {
        transcript.refused.set(stream.id, reason);
        connection.reset(stream, 1);
      },
    });
    connection.start();
    connection.output.take();
    return feed(connection);
  }

  function readAsClient(): ConnectionFault | undefined {
    const connection: ClientConnection<never> = new ClientConnection(LIMITS, {
      ...handler((stream, bytes) => connection.consume(stream, bytes)),
      mayOpen() {},
      answer(stream, { status, fields }, endStream) {
        const message = messageOf(transcript, stream.id);
        message.heads.push(canonicalHead([':status', String(status), ...fields]));
        message.ended ||= endStream;
      },
    });
    connection.start();
    for (const method of asked) {
      const fields = [':method', method, ':scheme', 'http', ':authority', 'a', ':path', '/'];
      connection.request(fields, method === 'HEAD' ? 'head' : 'ordinary', true);
    }
    connection.output.take();
    return feed(connection);
  }

  function feed(connection: {
    receive(chunk: Buffer, nowMs: number): ConnectionFault | undefined;
    readonly output: { take(): Buffer };
  }): ConnectionFault | undefined {
    for (const piece of pieces) {
      const chunk = Buffer.from(piece);
      const found = connection.receive(chunk, 0);
      noteResets(transcript, connection.output.take());
      chunk.fill(0xee);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** Notes the streams that a reader's own octets reset. */
export function noteResets(transcript: Transcript, octets: Buffer): void {
  for (const frame of readFrames([withoutPreface(octets)])) {
    const { kind, streamId, code } = frame as { kind?: string; streamId: number; code: number };
    if (kind === 'reset') transcript.refused.set(streamId, `code ${code}`);
    if (kind === 'goaway' && code !== 0) transcript.refusal ??= `code ${code}`;
  }
}

function withoutPreface(octets: Buffer): Buffer {
  return octets.subarray(0, PREFACE.length).equals(PREFACE) ? octets.subarray(PREFACE.length) : octets;
}
