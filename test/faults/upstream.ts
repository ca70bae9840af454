import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Certificate } from './certificates.ts';

export interface UpstreamOptions {
  readonly nowMs: () => number;
  /** Monotonic ms at which a token ends; undefined when it was never given. */
  readonly endOf: (token: string) => number | undefined;
  readonly certificate?: Certificate;
}

/** A protected API that judges every request's token by the provider's own record. */
export class FaultUpstream {
  /** Requests that should never have been sent: what was wrong with each. */
  readonly violations: string[] = [];
  /** Requests served. */
  served = 0;
  /** Answers 401 whatever the token. */
  refusesAll = false;
  /** What it says with a 401. */
  challenge: string | undefined;
  /** Beside it, for proofs. */
  nonce: string | undefined;
  /** Answers 401 to these. */
  readonly revoked = new Set<string>();
  readonly #server: Server | SecureServer;
  readonly #secure: boolean;

  private constructor({ nowMs, endOf, certificate }: UpstreamOptions) {
    this.#secure = certificate !== undefined;
    this.#server = certificate === undefined ? createServer() : createSecureServer(certificate);
    this.#server.on('request', (request, response) => {
      request.resume();
      const token = /^(?:Bearer|DPoP) ([\w.~+/-]+=*)$/.exec(request.headers.authorization ?? '')?.[1];
      const endsAtMs = token === undefined ? undefined : endOf(token);
      if (token === undefined) this.violations.push('no token');
      else if (endsAtMs === undefined) this.violations.push('a token that was never given');
      else if (nowMs() >= endsAtMs) this.violations.push(`a token ${nowMs() - endsAtMs} ms after its end`);
      this.served += 1;
      const refused = this.refusesAll || (token !== undefined && this.revoked.has(token));
      if (refused && this.challenge !== undefined) response.setHeader('www-authenticate', this.challenge);
      if (refused && this.nonce !== undefined) response.setHeader('dpop-nonce', this.nonce);
      response.writeHead(refused ? 401 : 200).end('{}');
    });
  }

  static async start(options: UpstreamOptions): Promise<FaultUpstream> {
    const upstream = new FaultUpstream(options);
    await new Promise<void>((resolve) => upstream.#server.listen(0, '127.0.0.1', resolve));
    return upstream;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `${this.#secure ? 'https' : 'http'}://127.0.0.1:${port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
