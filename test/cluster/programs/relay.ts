/**
 * An app that others call: it asks its sidecar for each of their requests, and passes on the answer. When it is to end it
 * serves for a while, in which Services learn of it, and leaves no connection open after the answer.
 */

import { createServer, request } from 'node:http';

const SIDECAR = 'http://127.0.0.1:15080/';
const LEAVING_MS = 4000;
let isLeaving = false;

const server = createServer((asked, answer) => {
  asked.resume();
  if (isLeaving) answer.setHeader('connection', 'close');
  const sent = request(SIDECAR, (answered) => {
    const code = answered.headers['token-sidecar-error'];
    answer.writeHead(answered.statusCode ?? 502, code === undefined ? {} : { 'token-sidecar-error': code });
    answered.pipe(answer);
  });
  sent.once('error', ({ message }) => answer.writeHead(502).end(message));
  sent.end();
});
// A caller that is about to ask again shall not find its connection closed.
server.keepAliveTimeout = 60_000;
server.listen(8080);

process.once('SIGTERM', () => {
  isLeaving = true;
  setTimeout(() => server.close(() => process.exit(0)), LEAVING_MS);
});
