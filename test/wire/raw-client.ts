import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import {
  type Body,
  type Head,
  NO_BODY,
  type ResponseHead,
  readAnswerBody,
  readAnswerHead,
} from './message-reader.ts';
import { type Ending, ReceivedBytes } from './received-bytes.ts';

/** A final answer, or a 101, read whole. */
export interface Answer {
  readonly head: ResponseHead;
  readonly status: number;
  readonly body: string;
  readonly trailers: Head;
  /** The 1xx answers that came before it. */
  readonly interim: readonly ResponseHead[];
}

/** An app that sends its bytes exactly as given. */
export class RawClient {
  readonly socket: Socket;
  readonly received: ReceivedBytes;

  constructor(socket: Socket) {
    this.socket = socket;
    this.received = new ReceivedBytes(socket);
    // A reset is an answer too: `closed()` reports it.
    socket.on('error', () => {});
  }

  /** Sends the bytes in one write; a string is latin1. */
  send(bytes: string | Buffer): this {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    return this;
  }

  /** The next head, interim or final; its body is left unread. */
  head(): Promise<ResponseHead> {
    return readAnswerHead(this.received);
  }

  /** What follows the head of a final answer to `method`. */
  body(head: ResponseHead, method = 'GET'): Promise<Body> {
    return readAnswerBody(this.received, head, method);
  }

  /** The next final answer, whole; the answer to a HEAD request has no body. */
  async response(method = 'GET'): Promise<Answer> {
    const interim: ResponseHead[] = [];
    for (;;) {
      const head = await this.head();
      if (head.status < 200 && head.status !== 101) {
        interim.push(head);
        continue;
      }
      const body = head.status === 101 ? NO_BODY : await this.body(head, method);
      return { head, status: head.status, body: body.text, trailers: body.trailers, interim };
    }
  }

  /** Resolves when the sidecar has closed the connection. */
  closed(): Promise<Ending> {
    return this.received.ended();
  }

  /** Half-closes: nothing more will be sent, answers are still read. */
  end(): void {
    this.socket.end();
  }

  /** Goes away as a killed process does. */
  destroy(): void {
    this.socket.destroy();
  }

  /** Goes away as a killed machine does. */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}

/** Connects, and is destroyed when the test is over. */
export async function connectClient(
  { host, port }: { host: string; port: number },
  localAddress = '127.0.0.1',
): Promise<RawClient> {
  const socket = connect({ host, port, localAddress, allowHalfOpen: true, noDelay: true });
  await once(socket, 'connect');
  onTestFinished(() => {
    socket.destroy();
  });
  return new RawClient(socket);
}
