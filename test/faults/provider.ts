import { createServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Certificate } from './certificates.ts';

/** What the provider does with a request whose credentials it has checked. */
export type Behaviour = (response: ServerResponse, provider: FaultProvider) => void;

export interface ProviderOptions {
  /** Monotonic ms of the time in which tokens live and requests are spaced. */
  readonly nowMs: () => number;
  readonly lifetimeSeconds: number;
  /** Tokens are good for so much longer than they say, as with every API that allows for clocks and the way to it. */
  readonly leewayMs?: number;
  readonly certificate?: Certificate;
}

/** A token endpoint that checks the secret, does as it is told, and knows every token it gave and when it ends. */
export class FaultProvider {
  /** When each request arrived. */
  readonly requestsAtMs: number[] = [];
  /** Each `grant_type` that was asked by. */
  readonly grantTypes = new Set<string | null>();
  /** Monotonic ms at which each token given ends. */
  readonly #endsAtMs = new Map<string, number>();
  readonly #options: ProviderOptions;
  readonly #server: Server | SecureServer;
  #port = 0;
  secret = 'right-1';
  /** The last that was the right one when it came. */
  acceptedSecret: string | undefined;
  behaviour: Behaviour = grantToken;
  /** Set by behaviours that leave the sidecar waiting: only time ends that. */
  stalls = false;
  /** Requests whose answer is not whole yet, and whose client still waits for it. */
  open = 0;

  private constructor(options: ProviderOptions) {
    this.#options = options;
    this.#server =
      options.certificate === undefined ? createServer() : createSecureServer(options.certificate);
    this.#server.on('request', (request, response) => {
      this.requestsAtMs.push(options.nowMs());
      this.open += 1;
      response.once('close', () => {
        this.open -= 1;
      });
      // It would be the machine's, not that of the time in which tokens live.
      response.sendDate = false;
      let form = '';
      request.setEncoding('latin1').on('data', (part: string) => {
        form += part;
      });
      request.once('end', () => {
        this.grantTypes.add(new URLSearchParams(form).get('grant_type'));
        const pair = Buffer.from(request.headers.authorization?.slice('Basic '.length) ?? '', 'base64');
        if (pair.toString() !== `shop:${this.secret}`) {
          refuse(401, { error: 'invalid_client' })(response, this);
          return;
        }
        this.acceptedSecret = this.secret;
        this.behaviour(response, this);
      });
    });
    this.#server.on('clientError', (_error, socket) => socket.destroy());
  }

  static async start(options: ProviderOptions): Promise<FaultProvider> {
    const provider = new FaultProvider(options);
    await provider.listen();
    return provider;
  }

  get url(): string {
    const scheme = this.#options.certificate === undefined ? 'http' : 'https';
    return `${scheme}://127.0.0.1:${this.#port}/realms/dx/protocol/openid-connect/token`;
  }

  /** A token that ends when it says, and the fields it comes with. */
  issue(): Record<string, unknown> {
    const access_token = `token-${this.#endsAtMs.size + 1}`;
    const { lifetimeSeconds } = this.#options;
    this.remember(access_token, lifetimeSeconds);
    const noise = { refresh_expires_in: 0, 'not-before-policy': 0, scope: '' };
    return { access_token, expires_in: lifetimeSeconds, token_type: 'Bearer', ...noise };
  }

  remember(token: string, lifetimeSeconds: number): void {
    const { nowMs, leewayMs = 0 } = this.#options;
    this.#endsAtMs.set(token, nowMs() + lifetimeSeconds * 1000 + leewayMs);
  }

  /** Monotonic ms at which the token ends; undefined when it was never given. */
  endOf(token: string): number | undefined {
    return this.#endsAtMs.get(token);
  }

  /** Every token given so far. */
  get given(): readonly string[] {
    return [...this.#endsAtMs.keys()];
  }

  /** Takes the place of the certificate, for new connections; the old ones are cut. */
  showCertificate(certificate: Certificate): void {
    (this.#server as SecureServer).setSecureContext(certificate);
    this.#server.closeAllConnections();
  }

  /** Nothing listens on the port any more. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  /** Listens, on the same port as before. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }
}

/** Every grant takes a connection of its own, so that each meets what connecting meets. */
export function grantTokenAndHangUp(response: ServerResponse, provider: FaultProvider): void {
  answer(200, issued(response, provider), { connection: 'close' })(response, provider);
}

export function grantToken(response: ServerResponse, provider: FaultProvider): void {
  answer(200, issued(response, provider))(response, provider);
}

/** Bound to the key of the proof, where the request has one. */
function issued({ req }: ServerResponse, provider: FaultProvider): string {
  const bound = req.headers['dpop'] === undefined ? {} : { token_type: 'DPoP' };
  return JSON.stringify({ ...provider.issue(), ...bound });
}

/** A token whose answer has other fields, or lacks some (`undefined`). */
export function grantWith(fields: Readonly<Record<string, unknown>>): Behaviour {
  return (response, provider) =>
    answer(200, JSON.stringify({ ...provider.issue(), ...fields }))(response, provider);
}

export function refuse(
  status: number,
  body: object | string = '',
  headers: Readonly<Record<string, string>> = {},
): Behaviour {
  return answer(status, typeof body === 'string' ? body : JSON.stringify(body), headers);
}

export function answer(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Behaviour {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };
}
