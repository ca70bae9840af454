/**
 * The oracle: llhttp in strict mode, as built into Node, driven through the parser object behind `node:http`. Of its
 * leniencies it has the one that the codec shares: spaces after the size of a chunk of an answer. Internal to Node, and so used by tests alone.
 */

import { createRequire } from 'node:module';
import { type Message, type Stream, started, type Transcript } from '../transcript.ts';

interface NodeParser {
  initialize(type: number, owner: object, maxHeaderBytes: number, lenientFlags: number): void;
  execute(bytes: Buffer): number | LlhttpError;
  finish(): LlhttpError | undefined;
  /** Lets go of it, and of all that its callbacks hold. */
  close(): void;
  [callback: number]: (...args: never[]) => unknown;
}

interface LlhttpError extends Error {
  readonly code: string;
  readonly reason: string;
}

interface HttpCommon {
  readonly methods: readonly string[];
  readonly HTTPParser: {
    new (): NodeParser;
    readonly REQUEST: number;
    readonly RESPONSE: number;
    readonly kOnHeaders: number;
    readonly kOnHeadersComplete: number;
    readonly kOnBody: number;
    readonly kOnMessageComplete: number;
    readonly kLenientNone: number;
    readonly kLenientSpacesAfterChunkSize: number;
  };
}

const { HTTPParser, methods } = createRequire(import.meta.url)('node:_http_common') as HttpCommon;

/** The methods that llhttp knows; it refuses all others. */
export const LLHTTP_METHODS: ReadonlySet<string> = new Set(methods);

const MAX_HEADER_BYTES = 65_536;
const NO_BODY_FOLLOWS = 1;

/** What llhttp makes of the same octets, in the same terms. */
export function transcribeWithLlhttp(stream: Stream): Transcript {
  const messages: Message[] = [];
  let message: Message | undefined;
  let held: string[] = [];
  let heldTarget = '';
  let tunnel = false;

  const parser = new HTTPParser();
  parser.initialize(
    stream.kind === 'request' ? HTTPParser.REQUEST : HTTPParser.RESPONSE,
    {},
    MAX_HEADER_BYTES,
    stream.kind === 'request' ? HTTPParser.kLenientNone : HTTPParser.kLenientSpacesAfterChunkSize,
  );
  // Fields come here when they are many, and trailers always.
  parser[HTTPParser.kOnHeaders] = (fields: string[], target: string) => {
    if (message === undefined) {
      held.push(...fields);
      heldTarget += target;
    } else {
      message.trailers = [...message.trailers, ...fields];
    }
  };
  parser[HTTPParser.kOnHeadersComplete] = (
    _major: number,
    minor: number,
    fields: string[] | null | undefined,
    method: number,
    target: string | null | undefined,
    status: number,
    reason: string,
    upgrade: boolean,
  ) => {
    const start =
      stream.kind === 'request' ? `${methods[method]} ${target ?? heldTarget}` : `${status} ${reason}`;
    message = started(start, minor, [...held, ...(fields ?? [])]);
    messages.push(message);
    held = [];
    heldTarget = '';
    tunnel = upgrade;
    return stream.requestMethod === 'HEAD' ? NO_BODY_FOLLOWS : 0;
  };
  parser[HTTPParser.kOnBody] = (data: Buffer) => {
    if (message !== undefined) message.body += data.toString('latin1');
  };
  parser[HTTPParser.kOnMessageComplete] = () => {
    if (message !== undefined) message.complete = true;
    message = undefined;
  };

  try {
    for (const piece of stream.pieces) {
      const result = parser.execute(piece);
      if (typeof result !== 'number')
        return { messages, end: 'refused', reason: `${result.code}: ${result.reason}` };
      if (tunnel && message === undefined) return { messages, end: 'tunnel' };
    }
    // Completes an answer that ends with the connection; anything else left unfinished is not a refusal of octets.
    parser.finish();
    return { messages, end: 'open' };
  } finally {
    parser.close();
  }
}
