/** One request through a proxy, on a connection of its own, before anything is measured. */

import { get } from 'node:http';
import { connect } from 'node:http2';

const BOUND_MS = 5000;

export function fetchOverHttp1(port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path, agent: false, timeout: BOUND_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.once('end', () => resolve(text));
      response.once('error', reject);
    });
    request.once('timeout', () => request.destroy(new Error(`no answer within ${BOUND_MS} ms`)));
    request.once('error', reject);
  });
}

/** By h2c. */
export function fetchOverHttp2(port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const session = connect(`http://127.0.0.1:${port}`);
    session.once('error', reject);
    const request = session.request({ ':path': path });
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    request.setTimeout(BOUND_MS, () => request.destroy(new Error(`no answer within ${BOUND_MS} ms`)));
    request.once('error', reject);
    request.once('close', () => {
      session.destroy();
      resolve(text);
    });
  });
}
