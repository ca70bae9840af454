/** The baseline: http-proxy as its users set it up for speed, with an agent that keeps connections. */

import { readFileSync } from 'node:fs';
import { Agent, createServer } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import httpProxy from 'http-proxy';
import { readNodeProxySettings } from './node-proxy.ts';

const { port, upstream, authorization, caFile, serverName } = readNodeProxySettings();
const agent = upstream.startsWith('https:')
  ? new TlsAgent({ keepAlive: true, ca: readFileSync(caFile), servername: serverName })
  : new Agent({ keepAlive: true });
const proxy = httpProxy.createProxyServer({ target: upstream, agent, headers: { authorization } });
proxy.on('error', (_error, _request, response) => {
  if (!response.headersSent) response.writeHead(502);
  response.end();
});
createServer((request, response) => proxy.web(request, response)).listen(port, '127.0.0.1');
