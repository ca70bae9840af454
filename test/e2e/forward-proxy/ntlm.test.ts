/** curl, which knows NTLM, and a server that knows its users by their connections (MS-NLMP §2.2.1, RFC 4559). */

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { forwardTo, routeTo, startSidecar } from '../../wire/sidecar.ts';

const run = promisify(execFile);

const SIGNATURE = Buffer.from('NTLMSSP\0');

/** Text is UTF-16, and the server has NTLM. */
const FLAGS = 0x201;

/** The second message: a challenge. */
function challenge(): string {
  const message = Buffer.alloc(48);
  SIGNATURE.copy(message);
  message.writeUInt32LE(2, 8);
  message.writeUInt32LE(message.length, 16);
  message.writeUInt32LE(FLAGS, 20);
  message.write('8 octets', 24, 'latin1');
  return message.toString('base64');
}

/** The user whom the third message names; undefined for another message. */
function userOf(message: Buffer): string | undefined {
  if (!message.subarray(0, 8).equals(SIGNATURE) || message.readUInt32LE(8) !== 3) return undefined;
  const at = message.readUInt32LE(40);
  return message.subarray(at, at + message.readUInt16LE(36)).toString('utf16le');
}

/** Says whose connection it is. */
async function startKnowingUsers(): Promise<{ host: string; port: number; connections: () => number }> {
  const challenged = new WeakSet<Socket>();
  const users = new WeakMap<Socket, string>();
  const serve: RequestListener = ({ socket, headers }, response) => {
    const [, text] = /^NTLM (.+)$/.exec(headers.authorization ?? '') ?? [];
    const user = text === undefined ? undefined : userOf(Buffer.from(text, 'base64'));
    if (text !== undefined && user === undefined) {
      challenged.add(socket);
      response.writeHead(401, { 'www-authenticate': `NTLM ${challenge()}` }).end();
      return;
    }
    if (user !== undefined && challenged.has(socket)) users.set(socket, user);
    const known = users.get(socket);
    if (known === undefined) response.writeHead(401, { 'www-authenticate': 'NTLM' }).end('nobody\n');
    else response.end(`${known}\n`);
  };
  let connections = 0;
  const server = createServer(serve).on('connection', () => connections++);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
  };
}

it.each(['by the forward proxy', 'by a route'])(
  'curl authenticates by NTLM %s, and who comes after it is nobody',
  async (way) => {
    const upstream = await startKnowingUsers();
    const sidecar = await startSidecar({
      routes: [routeTo({ address: upstream }, { existingAuthorization: 'keep' })],
      forwardProxy: forwardTo({ address: { host: 'listed.test', port: 80 } }, {}, { otherHosts: 'pass' }),
    });
    const own = `http://127.0.0.1:${sidecar.address.port}`;
    const url = way === 'by a route' ? `${own}/` : `http://127.0.0.1:${upstream.port}/`;
    const to = way === 'by a route' ? [] : ['--proxy', own];
    const { PATH = '' } = process.env;
    const env = { PATH };
    const curl = async (...args: string[]) =>
      (await run('curl', ['--silent', ...to, ...args], { env })).stdout;

    const alice = ['--ntlm', '--user', 'alice:secret'];
    expect(await curl(...alice, url, url)).toBe('alice\nalice\n');
    expect(await curl(url)).toBe('nobody\n');
    expect(await curl(...alice, url)).toBe('alice\n');
    expect(upstream.connections()).toBe(3);
  },
);
