/** Apps: connections that ask one request after another, and connections that ask once. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';

export interface Target {
  readonly port: number;
  /** For SNI. */
  readonly name: string;
  /** For Host, and for a CONNECT where one comes first. */
  readonly authority: string;
  /** Whether it is a proxy that is asked by CONNECT, or stands in the host's place. */
  readonly byConnect: boolean;
}

const END = '\r\n\r\n';

/** Every answer of the upstream is of one length, and its body is there with its head as a rule. */
const BODY_BYTES = 100;

async function opened({ port, name, authority, byConnect }: Target): Promise<TLSSocket> {
  const tcp = connect(port, '127.0.0.1');
  await once(tcp, 'connect');
  if (byConnect) {
    tcp.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}${END}`);
    const answer = await headOf(tcp);
    if (!/^HTTP\/1\.[01] 200/.test(answer)) throw new Error(`CONNECT: ${answer}`);
  }
  // What is measured is the proxy: who it is does not matter to this load.
  const socket = connectTls({ socket: tcp, servername: name, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return socket;
}

async function headOf(socket: Socket): Promise<string> {
  let said = '';
  while (!said.includes(END)) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    said += chunk.toString('latin1');
  }
  return said;
}

async function ask(socket: Socket, host: string): Promise<void> {
  socket.write(`GET /100b HTTP/1.1\r\nHost: ${host}${END}`);
  let said = '';
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    said += chunk.toString('latin1');
    const head = said.indexOf(END);
    if (head !== -1 && said.length >= head + END.length + BODY_BYTES) break;
  }
  if (!said.startsWith('HTTP/1.1 200')) throw new Error(`an answer that is not 200: ${said.slice(0, 200)}`);
}

/** @returns requests that were answered. */
export async function keepAsking(target: Target, connections: number, seconds: number): Promise<number> {
  const untilMs = performance.now() + seconds * 1000;
  let count = 0;
  const work = async (): Promise<void> => {
    const socket = await opened(target);
    while (performance.now() < untilMs) {
      await ask(socket, target.authority);
      count += 1;
    }
    socket.destroy();
  };
  await Promise.all(Array.from({ length: connections }, work));
  return count;
}

/** @returns connections, each with a full handshake and one request. */
export async function churn(target: Target, connections: number, seconds: number): Promise<number> {
  const untilMs = performance.now() + seconds * 1000;
  let count = 0;
  const work = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const socket = await opened(target);
      await ask(socket, target.authority);
      socket.destroy();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  return count;
}

/** What `look` sees while so many connections are open, each of which has asked once. */
export async function hold<T>(target: Target, connections: number, look: () => T): Promise<T> {
  const sockets: TLSSocket[] = [];
  for (let count = 0; count < connections; count++) {
    const socket = await opened(target);
    await ask(socket, target.authority);
    sockets.push(socket);
  }
  const seen = look();
  for (const socket of sockets) socket.destroy();
  return seen;
}
