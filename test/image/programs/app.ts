/**
 * An app as the image's tests need one, run in a container of the pod: it knows no token. For each request to port 8080
 * it sends one like it through the sidecar and hands back the answer.
 */

import { createServer, request } from 'node:http';

const SIDECAR = { host: '127.0.0.1', port: 15_080 };

const server = createServer((asked, answer) => {
  asked.resume();
  const { url: path, method } = asked;
  const sent = request({ ...SIDECAR, path, method, agent: false }, (received) => {
    answer.writeHead(received.statusCode ?? 502, received.headers);
    received.pipe(answer);
  });
  sent.once('error', (error) => answer.writeHead(502).end(`${error.message}\n`));
  sent.end();
});
server.listen(8080, '0.0.0.0');
process.once('SIGTERM', () => process.exit(0));
