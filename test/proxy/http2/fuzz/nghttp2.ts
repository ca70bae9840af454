/** One oracle: nghttp2, as Node has it, over a pair of streams that are no sockets. */

import http2 from 'node:http2';
import { duplexPair } from 'node:stream';
import { PREFACE } from '../../../../src/proxy/http2/settings.ts';
import { frame } from '../frames.ts';
import { type FuzzCase, LAST_PING } from './connection-grammar.ts';
import { canonicalHead, messageOf, newTranscript, noteResets, type Transcript } from './transcript.ts';

const LAST_PING_ACK = frame(6, 1, 0, LAST_PING);

/** Turns of the loop within which nghttp2 has said all that it has to say, and those that it gets after its last word. */
const MAX_TURNS = 60;
const LAST_TURNS = 3;

type Raw = string[];

export async function transcribeWithNghttp2({ sender, asked, frames }: FuzzCase): Promise<Transcript> {
  const transcript = newTranscript();
  const [theirs, ours] = duplexPair();
  let said = Buffer.alloc(0);
  ours.on('data', (octets: Buffer) => {
    said = Buffer.concat([said, octets]);
  });
  ours.on('error', () => {});

  const session =
    sender === 'client'
      ? http2.performServerHandshake(theirs)
      : http2.connect('http://a', { createConnection: () => theirs });
  let over = false;
  /** What ends with the session is no end that the peer said. */
  let done = false;
  session.on('error', (error: Error) => {
    transcript.refusal ??= error.message;
  });
  session.on('close', () => {
    over = true;
  });
  session.on('stream', (stream: http2.ServerHttp2Stream, _headers: unknown, flags: number, raw: Raw) => {
    stream.on('error', () => {});
    // To a client it is one that is pushed.
    if (sender === 'client') heard(stream, stream.id as number, flags, raw);
  });
  if (sender === 'server') {
    for (const [index, method] of asked.entries()) {
      const stream = (session as http2.ClientHttp2Session).request(
        { ':method': method },
        { endStream: true },
      );
      const id = index * 2 + 1;
      const head = (_headers: unknown, flags: number, raw: Raw): void => heard(stream, id, flags, raw);
      stream.on('headers', head).on('response', head);
      follow(stream, id);
    }
    for (let turn = 0; turn < MAX_TURNS && said.length === 0; turn++) await nextTurn();
    await nextTurn();
  }
  const before = said.length;

  ours.write(Buffer.concat([...(sender === 'client' ? [PREFACE] : []), ...frames]));
  for (let turn = 0; turn < MAX_TURNS && !over && !said.includes(LAST_PING_ACK); turn++) await nextTurn();
  for (let turn = 0; turn < LAST_TURNS; turn++) await nextTurn();
  done = true;
  noteResets(transcript, said.subarray(sender === 'client' ? 0 : before));
  session.destroy();
  ours.destroy();
  return transcript;

  function heard(stream: http2.Http2Stream, id: number, flags: number, raw: Raw): void {
    const message = messageOf(transcript, id);
    message.heads.push(canonicalHead(raw));
    if ((flags & 1) !== 0) message.ended = true;
    if (sender === 'client') follow(stream, id);
  }

  function follow(stream: http2.Http2Stream, id: number): void {
    stream.on('error', () => {});
    stream.on('data', (data: Buffer) => {
      messageOf(transcript, id).data += data.toString('latin1');
    });
    stream.on('end', () => {
      if (!done) messageOf(transcript, id).ended = true;
    });
    stream.on('trailers', (_fields: unknown, _flags: number, raw: Raw) => {
      messageOf(transcript, id).trailers = JSON.stringify(raw);
    });
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
