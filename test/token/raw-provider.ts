import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { Certificate } from '../support/certificate-authority.ts';

/** What the provider does on a connection that a request has come on; `request` counts from 1, over all of them. */
export type Reaction = (socket: Socket, request: number) => void;

const TOKEN = JSON.stringify({ access_token: 'token', token_type: 'Bearer', expires_in: 300 });

/** A whole answer with a token, and `fields` of the test's own: `keep-alive: timeout=1\r\n`. */
export function tokenAnswer(fields = '', body = TOKEN): string {
  const length = Buffer.byteLength(body);
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${fields}\r\n${body}`;
}

/** A provider of bytes, for what no HTTP library would do. It takes what comes in one read for one request. */
export class RawProvider {
  readonly url: string;
  /** Oldest first. */
  readonly requests: { readonly connection: number; readonly text: string }[] = [];
  /** By connection: settled when it has closed. */
  readonly closings: Promise<unknown>[] = [];
  #arrivals: (() => void)[] = [];

  private constructor(url: string) {
    this.url = url;
  }

  static async start(reaction: Reaction, certificate?: Certificate): Promise<RawProvider> {
    const open = new Set<Socket>();
    const server: Server =
      certificate === undefined
        ? createServer()
        : createSecureServer({ ...certificate, ALPNProtocols: ['h2', 'http/1.1'] });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.close();
      for (const socket of open) socket.destroy();
    });
    const scheme = certificate === undefined ? 'http' : 'https';
    const provider = new RawProvider(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/token`);
    server.on(certificate === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
      open.add(socket);
      socket.on('error', () => socket.destroy());
      const connection = provider.closings.push(new Promise((resolve) => socket.once('close', resolve)));
      socket.on('data', (bytes) => {
        const request = provider.requests.push({ connection, text: bytes.toString() });
        reaction(socket, request);
        for (const arrived of provider.#arrivals.splice(0)) arrived();
      });
    });
    return provider;
  }

  /** Settles when the connection, counted from 1, has closed. */
  async closed(connection: number): Promise<void> {
    await this.closings[connection - 1];
  }

  /** Settles once a request after those so far has come. */
  nextRequest(): Promise<void> {
    return new Promise((resolve) => this.#arrivals.push(resolve));
  }
}
