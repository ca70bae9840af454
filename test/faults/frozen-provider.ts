/**
 * A token endpoint in a process of its own, so that it can be stopped: a stopped process accepts no connection, and
 * once its short backlog is full the kernel drops every further SYN. A token says itself when it ends.
 */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const [lifetimeSeconds = Number.NaN, leewayMs = Number.NaN] = process.argv.slice(2).map(Number);

const server = createServer((request, response) => {
  request.resume();
  const endsAtMs = Date.now() + lifetimeSeconds * 1000 + leewayMs;
  // Every grant takes a connection of its own.
  response.writeHead(200, { 'content-type': 'application/json', connection: 'close' });
  response.end(
    JSON.stringify({ access_token: `ends.${endsAtMs}`, expires_in: lifetimeSeconds, token_type: 'Bearer' }),
  );
});
server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
