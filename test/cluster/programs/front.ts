/**
 * What stands in front of an issuer that verifiers find by discovery: TLS, with the certificate in /tls, and two ports
 * behind one address (docs/reference/issuer.md, Discovery).
 */

import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';

const { TOKENS = '', DISCOVERY = '' } = process.env;

createServer({ cert: readFileSync('/tls/tls.crt'), key: readFileSync('/tls/tls.key') }, (asked, answer) => {
  const path = asked.url ?? '/';
  const target = new URL(path, path.endsWith('/openid-connect/token') ? TOKENS : DISCOVERY);
  const { method, headers } = asked;
  const sent = request(target, { ...(method === undefined ? {} : { method }), headers }, (answered) => {
    answer.writeHead(answered.statusCode ?? 502, answered.headers);
    answered.pipe(answer);
  });
  sent.once('error', () => answer.writeHead(502).end());
  asked.pipe(sent);
}).listen(8443);
process.once('SIGTERM', () => process.exit(0));
