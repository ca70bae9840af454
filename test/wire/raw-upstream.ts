import { once } from 'node:events';
import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { inject, onTestFinished } from 'vitest';
import type { ListenAddress } from '../../src/platform/net/address.ts';
import { type Certificate, selfSigned } from './certificate.ts';
import {
  type Body,
  MalformedMessage,
  type RequestHead,
  readRequestBody,
  readRequestHead,
} from './message-reader.ts';
import { type Ending, ReceivedBytes } from './received-bytes.ts';
import { temporaryFile } from './temporary-file.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** What the upstreams of this run speak, unless a test says it of one. */
    upstreams: 'plain' | 'tls';
  }
}

/** Whether upstreams speak TLS in this run: each wire test runs once so and once over plain TCP. */
export const overTls = inject('upstreams') === 'tls';

/** Called when the head of a request has come. */
export type Script = (request: UpstreamRequest) => void | Promise<void>;

/** One connection that the sidecar made. */
export class UpstreamConnection {
  readonly socket: Socket;
  readonly received: ReceivedBytes;
  /** Beneath TLS; without it the socket itself. */
  readonly #tcp: Socket;

  constructor(socket: Socket, tcp: Socket) {
    this.socket = socket;
    this.#tcp = tcp;
    this.received = new ReceivedBytes(socket);
    // A reset is something to assert: `closed()` reports it.
    socket.on('error', () => {});
  }

  send(bytes: string | Buffer): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** Resolves when the sidecar has closed the connection. */
  closed(): Promise<Ending> {
    return this.received.ended();
  }

  /** Half-closes: a clean end of what the upstream has to say. */
  end(): void {
    this.socket.end();
  }

  /** Closes the connection; over TLS it is not said that this is the end. */
  destroy(): void {
    this.socket.destroy();
  }

  /** Goes away as a killed machine does. */
  reset(): void {
    this.#tcp.resetAndDestroy();
    this.socket.destroy();
  }
}

/** One request as it arrived. */
export class UpstreamRequest {
  readonly head: RequestHead;
  readonly connection: UpstreamConnection;
  /** Resolves when the answer has begun; whatever came after an upgrade is framed by that. */
  readonly answered: Promise<'tunnel' | 'http'>;
  readonly #body: Promise<Body>;
  #onAnswer: (kind: 'tunnel' | 'http') => void = () => {};

  constructor(head: RequestHead, connection: UpstreamConnection) {
    this.head = head;
    this.connection = connection;
    this.answered = new Promise((resolve) => {
      this.#onAnswer = resolve;
    });
    this.#body = readRequestBody(connection.received, head);
    // Whoever wants the body awaits it; nobody else minds that it broke off.
    this.#body.catch(() => {});
  }

  /** The whole body; rejects when the connection ends before it does. */
  body(): Promise<Body> {
    return this.#body;
  }

  /** Sends bytes as they are. */
  answer(bytes: string | Buffer): void {
    this.#onAnswer(bytes.toString('latin1').startsWith('HTTP/1.1 101') ? 'tunnel' : 'http');
    this.connection.send(bytes);
  }
}

/** A server of which every byte, received and sent, is the test's. */
export class RawUpstream {
  readonly address: ListenAddress;
  readonly protocol: 'http' | 'https';
  /** Who vouches for it, where no test has chosen the certificate. */
  readonly caFile: string | undefined;
  readonly connections: UpstreamConnection[] = [];
  /** Every request whose head has come, in order of arrival. */
  readonly requests: UpstreamRequest[] = [];
  readonly #script: Script | undefined;
  #malformed: MalformedMessage | undefined;
  #taken = 0;
  #waiting: (() => void)[] = [];

  constructor(server: Server, protocol: 'http' | 'https', caFile: string | undefined, script?: Script) {
    const address = server.address();
    if (address === null || typeof address === 'string')
      throw new Error('the upstream does not listen on TCP');
    this.address = { host: '127.0.0.1', port: address.port };
    this.protocol = protocol;
    this.caFile = caFile;
    this.#script = script;
  }

  /** The Host field that the sidecar must send. */
  get authority(): string {
    return `${this.address.host}:${this.address.port}`;
  }

  /** Every byte that arrived, connection after connection. */
  get text(): string {
    return this.connections.map(({ received }) => received.text).join('');
  }

  get targets(): string[] {
    return this.requests.map(({ head }) => head.target);
  }

  /** The next request, in order of arrival, once its head is there; rejects when the sidecar sent no valid one. */
  async request(): Promise<UpstreamRequest> {
    for (;;) {
      if (this.#malformed !== undefined) throw this.#malformed;
      const next = this.requests[this.#taken];
      if (next !== undefined) {
        this.#taken += 1;
        return next;
      }
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  accept(socket: Socket, tcp: Socket): void {
    const connection = new UpstreamConnection(socket, tcp);
    this.connections.push(connection);
    void this.#read(connection);
  }

  async #read(connection: UpstreamConnection): Promise<void> {
    while (await connection.received.available()) {
      try {
        const request = new UpstreamRequest(await readRequestHead(connection.received), connection);
        this.#deliver(request);
        await request.body();
        if (request.head.value('upgrade') !== undefined && (await request.answered) === 'tunnel') return;
      } catch (error) {
        // A connection that ended midway has no next request, and is often what the test is about.
        if (error instanceof MalformedMessage) this.#malformed = error;
        this.#wake();
        return;
      }
    }
  }

  #deliver(request: UpstreamRequest): void {
    this.requests.push(request);
    this.#wake();
    // A script fails when the request it waits for breaks off; its connection is of no more use then.
    Promise.resolve(this.#script?.(request)).catch(() => request.connection.destroy());
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}

let ownCertificate: Certificate | undefined;

/**
 * Listens on loopback, and is gone when the test is over. Without a script the test answers request by request.
 * @param transport as the run has it, with a certificate that `routeTo` makes trusted, unless told otherwise.
 */
export async function startUpstream(
  script?: Script,
  transport: TlsOptions | 'plain' | 'as-run' = 'as-run',
): Promise<RawUpstream> {
  let tls = typeof transport === 'object' ? transport : undefined;
  let caFile: string | undefined;
  if (transport === 'as-run' && overTls) {
    ownCertificate ??= selfSigned('127.0.0.1', 'localhost');
    tls = ownCertificate;
    caFile = await temporaryFile('upstream-ca.crt', ownCertificate.cert);
  }
  /** By the sidecar's port. */
  const sockets = new Map<number | undefined, Socket>();
  const accept = (socket: Socket): void => upstream.accept(socket, sockets.get(socket.remotePort) ?? socket);
  const server = tls
    ? createTlsServer({ ...tls, allowHalfOpen: true }, accept)
    : createTcpServer({ allowHalfOpen: true, noDelay: true });
  // Those too whose TLS handshake never ends.
  server.on('connection', (socket) => {
    if (tls === undefined) accept(socket);
    const port = socket.remotePort;
    sockets.set(port, socket);
    socket.once('close', () => {
      if (sockets.get(port) === socket) sockets.delete(port);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const upstream = new RawUpstream(server, tls ? 'https' : 'http', caFile, script);
  onTestFinished(async () => {
    for (const socket of sockets.values()) socket.destroy();
    server.close();
    await once(server, 'close');
  });
  return upstream;
}

/** Answers every request, once it is whole, with the same bytes. */
export function answering(bytes: string | Buffer): Script {
  return async (request) => {
    await request.body();
    request.answer(bytes);
  };
}

/** Answers the first request with the first script, and so on; the last one goes on answering. */
export function inTurn(first: Script, ...others: Script[]): Script {
  const scripts = [first, ...others];
  return (request) => {
    const script = scripts.length > 1 ? scripts.shift() : scripts[0];
    return script?.(request);
  };
}
