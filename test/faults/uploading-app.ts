/**
 * An app that uploads more than its server takes, again and again, and prints how often it got the server's answer:
 * `uploading-app.ts http1|h2 ORIGIN UPLOADS [CA]`.
 */

import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:http2';
import { request as secureRequest } from 'node:https';
import type { Writable } from 'node:stream';

const UPLOAD_BYTES = 30_000_000;
const PIECE = Buffer.alloc(64 * 1024, 'x');

const [protocol, origin = '', uploads, ca] = process.argv.slice(2);
const tls = ca === undefined ? {} : { ca: readFileSync(ca) };

function pour(into: Writable): void {
  let left = UPLOAD_BYTES;
  const more = (): void => {
    while (left > 0 && into.writable) {
      const piece = PIECE.subarray(0, Math.min(left, PIECE.length));
      left -= piece.length;
      if (!into.write(piece)) {
        into.once('drain', more);
        return;
      }
    }
    if (left === 0) into.end();
  };
  more();
}

function overHttp1(): Promise<string> {
  return new Promise((resolve) => {
    const send = origin.startsWith('https:') ? secureRequest : request;
    const upload = send(
      `${origin}/upload`,
      { method: 'POST', agent: false, headers: { 'content-length': UPLOAD_BYTES }, ...tls },
      (answer) => {
        let body = '';
        answer.setEncoding('utf8').on('data', (text: string) => {
          body += text;
        });
        answer.on('end', () => resolve(`${answer.statusCode} ${body}`));
        answer.on('error', (error) => resolve(error.message));
      },
    );
    upload.on('error', (error) => resolve(error.message));
    pour(upload);
  });
}

function overHttp2(): Promise<string> {
  return new Promise((resolve) => {
    const session = connect(origin, tls);
    const upload = session.request({ ':method': 'POST', ':path': '/upload' });
    let status = 0;
    let body = '';
    session.on('error', () => {});
    upload.on('response', (headers) => {
      status = headers[':status'] ?? 0;
    });
    upload.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    upload.on('end', () => resolve(`${status} ${body}`));
    upload.on('error', (error) => resolve(error.message));
    upload.on('close', () => {
      resolve('closed');
      session.destroy();
    });
    pour(upload);
  });
}

const outcomes: Record<string, number> = {};
for (let upload = 0; upload < Number(uploads); upload++) {
  const outcome = await (protocol === 'h2' ? overHttp2() : overHttp1());
  outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
}
process.stdout.write(`${JSON.stringify(outcomes)}\n`);
