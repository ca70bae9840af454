/**
 * Reads HTTP/1.1 messages off received bytes, strictly: what the sidecar sends must be well formed, and a message
 * that is not makes the read fail.
 */

import type { ReceivedBytes } from './received-bytes.ts';

const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;

/** Bytes that are no HTTP/1.1 message, as opposed to a connection that ended too soon. */
export class MalformedMessage extends Error {}

/** A start line and its fields, in the order and the case in which they came. */
export class Head {
  readonly startLine: string;
  readonly fields: readonly (readonly [name: string, value: string])[];

  constructor(text: string) {
    const [startLine = '', ...lines] = text.slice(0, -4).split('\r\n');
    if (/[\r\n\0]/.test(startLine))
      throw new MalformedMessage(`malformed start line: ${JSON.stringify(startLine)}`);
    this.startLine = startLine;
    this.fields = lines.map((line) => {
      const [, name, value] = FIELD_LINE.exec(line) ?? [];
      if (name === undefined || value === undefined)
        throw new MalformedMessage(`malformed field line: ${JSON.stringify(line)}`);
      return [name, value];
    });
  }

  /** Every value of a field, matched without case. */
  values(name: string): string[] {
    return this.fields.filter(([field]) => field.toLowerCase() === name).map(([, value]) => value);
  }

  /** The value of a field that must not be repeated; undefined when it is absent. */
  value(name: string): string | undefined {
    const values = this.values(name);
    if (values.length > 1) throw new MalformedMessage(`${name} is repeated: ${JSON.stringify(values)}`);
    return values[0];
  }

  get names(): string[] {
    return this.fields.map(([name]) => name.toLowerCase());
  }
}

export class RequestHead extends Head {
  readonly method: string;
  readonly target: string;
  readonly version: string;

  constructor(text: string) {
    super(text);
    const [, method, target, version] = /^(\S+) (\S+) (HTTP\/\d\.\d)$/.exec(this.startLine) ?? [];
    if (method === undefined || target === undefined || version === undefined) {
      throw new MalformedMessage(`malformed request line: ${JSON.stringify(this.startLine)}`);
    }
    this.method = method;
    this.target = target;
    this.version = version;
  }
}

export class ResponseHead extends Head {
  readonly version: string;
  readonly status: number;
  readonly reason: string;

  constructor(text: string) {
    super(text);
    const [, version, status, reason] = /^(HTTP\/1\.[01]) (\d{3}) ?(.*)$/.exec(this.startLine) ?? [];
    if (version === undefined || status === undefined || reason === undefined) {
      throw new MalformedMessage(`malformed status line: ${JSON.stringify(this.startLine)}`);
    }
    this.version = version;
    this.status = Number(status);
    this.reason = reason;
  }
}

export interface Body {
  readonly text: string;
  /** The trailer section of a chunked body. */
  readonly trailers: Head;
}

const NO_TRAILERS = new Head('\r\n\r\n');
export const NO_BODY: Body = { text: '', trailers: NO_TRAILERS };

export async function readRequestHead(received: ReceivedBytes): Promise<RequestHead> {
  return new RequestHead(await received.through('\r\n\r\n'));
}

export async function readAnswerHead(received: ReceivedBytes): Promise<ResponseHead> {
  return new ResponseHead(await received.through('\r\n\r\n'));
}

/** The body of a request (RFC 9112 §6.3, from the receiver's side). */
export function readRequestBody(received: ReceivedBytes, head: RequestHead): Promise<Body> {
  const framed = readFramed(received, head);
  return framed ?? Promise.resolve(NO_BODY);
}

/** The body of a final answer to a request with `method`. */
export async function readAnswerBody(
  received: ReceivedBytes,
  head: ResponseHead,
  method: string,
): Promise<Body> {
  if (method === 'HEAD' || head.status < 200 || head.status === 204 || head.status === 304) return NO_BODY;
  return readFramed(received, head) ?? { text: await received.rest(), trailers: NO_TRAILERS };
}

function readFramed(received: ReceivedBytes, head: Head): Promise<Body> | undefined {
  const coding = head.value('transfer-encoding');
  const length = head.value('content-length');
  if (coding !== undefined && length !== undefined)
    throw new MalformedMessage('both Content-Length and Transfer-Encoding');
  if (coding !== undefined) {
    if (coding.toLowerCase() !== 'chunked')
      throw new MalformedMessage(`Transfer-Encoding is ${JSON.stringify(coding)}`);
    return readChunked(received);
  }
  if (length === undefined) return undefined;
  if (!/^\d+$/.test(length)) throw new MalformedMessage(`Content-Length is ${JSON.stringify(length)}`);
  return received.exactly(Number(length)).then((text) => ({ text, trailers: NO_TRAILERS }));
}

async function readChunked(received: ReceivedBytes): Promise<Body> {
  let text = '';
  for (;;) {
    const line = await received.through('\r\n');
    const [, size] = /^([0-9a-fA-F]+)(?:;[^\r\n]*)?\r\n$/.exec(line) ?? [];
    if (size === undefined) throw new MalformedMessage(`malformed chunk size: ${JSON.stringify(line)}`);
    if (Number.parseInt(size, 16) === 0) break;
    text += await received.exactly(Number.parseInt(size, 16));
    const end = await received.exactly(2);
    if (end !== '\r\n') throw new MalformedMessage(`malformed chunk end: ${JSON.stringify(end)}`);
  }
  let section = '\r\n';
  for (;;) {
    const line = await received.through('\r\n');
    section += line;
    if (line === '\r\n') return { text, trailers: new Head(section) };
  }
}
