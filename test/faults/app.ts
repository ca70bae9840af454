import { request } from 'node:http';
import type { ListenAddress } from '../../src/platform/net/address.ts';

export interface AppAnswer {
  readonly status: number;
  /** The `token-sidecar-error` field. */
  readonly error: string | undefined;
  readonly retryAfter: string | undefined;
  readonly sentAtMs: number;
  readonly tookMs: number;
}

/** The app container: one request a connection, and a record of what came back when. */
export class App {
  readonly answers: AppAnswer[] = [];
  pending = 0;
  readonly #address: ListenAddress;
  readonly #nowMs: () => number;

  constructor(address: ListenAddress, nowMs: () => number) {
    this.#address = address;
    this.#nowMs = nowMs;
  }

  /** Never rejects: a connection that breaks is an answer with status 0. */
  async send(authorization?: string): Promise<AppAnswer> {
    const sentAtMs = this.#nowMs();
    this.pending += 1;
    const facts = await this.#exchange(authorization);
    this.pending -= 1;
    const answer = { ...facts, sentAtMs, tookMs: this.#nowMs() - sentAtMs };
    this.answers.push(answer);
    return answer;
  }

  #exchange(authorization: string | undefined): Promise<Pick<AppAnswer, 'status' | 'error' | 'retryAfter'>> {
    return new Promise((resolve) => {
      const headers = authorization === undefined ? {} : { authorization };
      const sent = request({ ...this.#address, path: '/orders', agent: false, headers }, (response) => {
        response.resume();
        response.once('close', () =>
          resolve({
            status: response.complete ? (response.statusCode ?? 0) : 0,
            error: response.headers['token-sidecar-error'] as string | undefined,
            retryAfter: response.headers['retry-after'],
          }),
        );
      });
      sent.once('error', () => resolve({ status: 0, error: undefined, retryAfter: undefined }));
      sent.end();
    });
  }
}
