/** As little as will do on node:http and undici's dispatch: streams both ways with back-pressure, nothing checked. */

import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { Pool } from 'undici';
import { readNodeProxySettings } from './node-proxy.ts';

const { port, upstream, authorization, caFile, serverName } = readNodeProxySettings();

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'expect',
  'te',
  'trailer',
]);

const pool = new Pool(upstream, {
  connections: 256,
  pipelining: 1,
  ...(upstream.startsWith('https:') ? { connect: { ca: readFileSync(caFile), servername: serverName } } : {}),
});

function endToEnd(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !HOP_BY_HOP.has(name)) kept[name] = value;
  }
  return kept;
}

createServer((request, response) => {
  const hasBody =
    request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  pool.dispatch(
    {
      method: request.method ?? 'GET',
      path: request.url ?? '/',
      headers: { ...endToEnd(request.headers), authorization },
      body: hasBody ? request : null,
    },
    {
      onRequestStart() {},
      onResponseStart(controller, status, headers) {
        response.writeHead(status, endToEnd(headers));
        response.on('drain', () => controller.resume());
      },
      onResponseData(controller, chunk) {
        if (!response.write(chunk)) controller.pause();
      },
      onResponseEnd() {
        response.end();
      },
      onResponseError() {
        if (!response.headersSent) response.writeHead(502);
        response.end();
      },
    },
  );
}).listen(port, '127.0.0.1');
