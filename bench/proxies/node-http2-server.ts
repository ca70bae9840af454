/** As little as will do on node:http2: one connection to the upstream, streams both ways with back-pressure, nothing checked. */

import { readFileSync } from 'node:fs';
import {
  type ClientHttp2Stream,
  connect,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { readNodeProxySettings } from './node-proxy.ts';

const { port, upstream, authorization, caFile, serverName } = readNodeProxySettings();
const session = connect(
  upstream,
  upstream.startsWith('https:') ? { ca: readFileSync(caFile), servername: serverName } : {},
);

createServer()
  .on('stream', (answer: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const request = session.request({ ...headers, authorization });
    request.on('response', (head) => {
      if (answer.destroyed) return;
      let trailers: IncomingHttpHeaders = {};
      request.once('trailers', (fields) => {
        trailers = fields;
      });
      answer.respond({ ...head }, { waitForTrailers: true });
      answer.once('wantTrailers', () => answer.sendTrailers({ ...trailers }));
      request.pipe(answer);
    });
    answer.pipe(request);
    endTogether(answer, request);
    endTogether(request, answer);
  })
  .listen(port, '127.0.0.1');

function endTogether(
  one: ServerHttp2Stream | ClientHttp2Stream,
  other: ServerHttp2Stream | ClientHttp2Stream,
): void {
  one.once('error', () => other.close());
  one.once('aborted', () => other.close());
}
