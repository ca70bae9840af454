/** A server of the RESP protocol on a real socket, which answers what the test says: for what a real one cannot be made to say. */

import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { Certificate } from '../../support/certificate-authority.ts';

/** The bytes of an answer; undefined for none. */
type Answer = (command: readonly string[], socket: Socket) => string | undefined;

export class RespServer {
  readonly received: (readonly string[])[] = [];
  readonly sockets = new Set<Socket>();
  readonly port: number;
  answer: Answer;

  private constructor(port: number, answer: Answer) {
    this.port = port;
    this.answer = answer;
  }

  /** @param certificate over TLS with it. */
  static async start(answer: Answer = emptyStore, certificate?: Certificate): Promise<RespServer> {
    const listening = certificate === undefined ? createServer() : createTlsServer({ ...certificate });
    listening.listen(0, '127.0.0.1');
    await once(listening, 'listening');
    const { port } = listening.address() as AddressInfo;
    const server = new RespServer(port, answer);
    onTestFinished(() => {
      for (const socket of server.sockets) socket.destroy();
      listening.close();
    });
    listening.on(certificate === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
      server.sockets.add(socket);
      let text = '';
      socket.setEncoding('latin1').on('error', () => undefined);
      socket.on('close', () => server.sockets.delete(socket));
      socket.on('data', (chunk: string) => {
        text += chunk;
        for (let next = parse(text); next !== undefined; next = parse(text)) {
          text = next.rest;
          server.received.push(next.command);
          const bytes = server.answer(next.command, socket);
          if (bytes !== undefined) socket.write(bytes, 'latin1');
        }
      });
    });
    return server;
  }
}

/** The first command of a text (`*2\r\n$3\r\nGET\r\n$1\r\na\r\n`); undefined while it is not whole. */
function parse(text: string): { readonly command: readonly string[]; readonly rest: string } | undefined {
  const [head, count] = /^\*(\d+)\r\n/.exec(text) ?? [];
  if (head === undefined) return undefined;
  let rest = text.slice(head.length);
  const command: string[] = [];
  for (let index = 0; index < Number(count); index++) {
    const [size, length] = /^\$(\d+)\r\n/.exec(rest) ?? [];
    if (size === undefined || rest.length < size.length + Number(length) + 2) return undefined;
    command.push(rest.slice(size.length, size.length + Number(length)));
    rest = rest.slice(size.length + Number(length) + 2);
  }
  return { command, rest };
}

export const bulk = (value: string): string => `$${value.length}\r\n${value}\r\n`;

/** Of a server that has nothing and keeps nothing. */
export const emptyStore: Answer = ([name]) => {
  if (name === 'PTTL') return ':-2\r\n';
  if (name === 'GETRANGE') return bulk('');
  return name === 'DEL' ? ':0\r\n' : '+OK\r\n';
};
