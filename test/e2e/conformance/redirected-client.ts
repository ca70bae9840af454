/**
 * What the suite starts as the client under test, as `redirected-client.ts CLIENT HOST PORT`: the suite's own client, which is told that
 * the server is at the sidecar, without TLS.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimited, field, messagesIn } from './messages.ts';

/** Of the message `ClientCompatRequest`. */
const HOST = 6;
const PORT = 7;
const SERVER_TLS_CERT = 8;

const [client = '', host = '', port = ''] = process.argv.slice(2);
const child = spawn(client, { stdio: ['pipe', 'inherit', 'inherit'] });
const exited = once(child, 'exit');
for await (const message of messagesIn(process.stdin)) {
  child.stdin.write(
    delimited(message, field(HOST, host), field(PORT, Number(port)), field(SERVER_TLS_CERT, '')),
  );
}
child.stdin.end();
[process.exitCode] = (await exited) as [number];
