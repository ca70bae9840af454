/**
 * An app as pods have it: it knows no token, and calls URL every INTERVAL_MS. With TIMES it ends after so many calls,
 * with 0 if all were answered 200. Without, it goes on, and tells on port 8080 what it has counted. A gateway is shown the
 * token in TOKEN_FILE or the certificate in the directory IDENTITY, and known by CA_FILE.
 */

import { readFileSync } from 'node:fs';
import { createServer, request as requestInClear } from 'node:http';
import { request as requestOverTls } from 'node:https';

const { URL: url = 'http://127.0.0.1:15080/', INTERVAL_MS = '50', TIMES } = process.env;
const { TOKEN_FILE: tokenFile, IDENTITY: identity, CA_FILE: caFile } = process.env;
const request = url.startsWith('https:') ? requestOverTls : requestInClear;
const times = TIMES === undefined ? Number.POSITIVE_INFINITY : Number(TIMES);
const counts: { calls: number; failed: number; failures: string[] } = { calls: 0, failed: 0, failures: [] };

const tls = {
  ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
  ...(identity === undefined
    ? {}
    : { cert: readFileSync(`${identity}/tls.crt`), key: readFileSync(`${identity}/tls.key`) }),
};
/** Read for each call: the kubelet replaces the file. */
const proof = (): Record<string, string> =>
  tokenFile === undefined ? {} : { 'token-sidecar-caller': readFileSync(tokenFile, 'utf8').trim() };

function call(): Promise<void> {
  return new Promise((resolve) => {
    const finish = (failure?: string): void => {
      counts.calls += 1;
      if (failure !== undefined) {
        counts.failed += 1;
        if (counts.failures.length < 20) counts.failures.push(`${new Date().toISOString()} ${failure}`);
      }
      resolve();
    };
    const sent = request(url, { ...tls, headers: proof() }, (answer) => {
      const code = answer.headers['token-sidecar-error'] ?? '';
      answer.resume();
      answer.once('error', (error) => finish(error.message));
      answer.once('end', () =>
        finish(answer.statusCode === 200 ? undefined : `${answer.statusCode} ${code}`),
      );
    });
    sent.setTimeout(20_000, () => sent.destroy(new Error('no answer within 20 s')));
    sent.once('error', (error) => finish(error.message));
    sent.end();
  });
}

function leave(): never {
  process.stdout.write(`${JSON.stringify(counts)}\n`);
  process.exit(counts.failed === 0 ? 0 : 1);
}

process.once('SIGTERM', () => process.exit(0));
createServer((asked, answer) => {
  asked.resume();
  answer.end(JSON.stringify(counts));
}).listen(8080);

while (counts.calls < times) {
  await call();
  await new Promise((resolve) => setTimeout(resolve, Number(INTERVAL_MS)));
}
leave();
