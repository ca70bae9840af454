import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ReceivedGrant {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly form: URLSearchParams;
  readonly connection: number;
}

type Script = (response: ServerResponse, request: IncomingMessage) => void;

/** A token endpoint that answers what the test says, on a real socket, and remembers what it was asked. */
export class ScriptedTokenEndpoint {
  readonly received: ReceivedGrant[] = [];
  readonly url: string;
  script: Script;
  #arrivals: (() => void)[] = [];

  private constructor(url: string, script: Script) {
    this.url = url;
    this.script = script;
  }

  static async start(script: Script = answerToken()): Promise<ScriptedTokenEndpoint> {
    let connections = 0;
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const endpoint = new ScriptedTokenEndpoint(
      `http://127.0.0.1:${port}/realms/dx/protocol/openid-connect/token`,
      script,
    );
    const numbers = new WeakMap<object, number>();
    server.on('connection', (socket) => numbers.set(socket, ++connections));
    server.on('request', async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      endpoint.received.push({
        path: request.url ?? '',
        authorization: request.headers.authorization,
        contentType: request.headers['content-type'],
        form: new URLSearchParams(Buffer.concat(chunks).toString('utf8')),
        connection: numbers.get(request.socket) ?? 0,
      });
      endpoint.script(response, request);
      for (const arrived of endpoint.#arrivals.splice(0)) arrived();
    });
    return endpoint;
  }

  /** Resolves when `count` requests in all have been received. */
  async requests(count: number): Promise<void> {
    while (this.received.length < count) await new Promise<void>((resolve) => this.#arrivals.push(resolve));
  }
}

/** Answers a token; `fields` replace or add to the six of the specification. */
export function answerToken(fields: Readonly<Record<string, unknown>> = {}): Script {
  let issued = 0;
  return answer(200, () =>
    JSON.stringify({
      access_token: `token-${++issued}`,
      expires_in: 300,
      refresh_expires_in: 0,
      token_type: 'Bearer',
      'not-before-policy': 0,
      scope: '',
      ...fields,
    }),
  );
}

export function answer(
  status: number,
  body: string | (() => string),
  headers: Readonly<Record<string, string>> = { 'content-type': 'application/json' },
): Script {
  return (response) => {
    response.writeHead(status, headers);
    response.end(typeof body === 'string' ? body : body());
  };
}
