import type { ProxyErrorCode, SidecarError } from '../../../src/platform/errors.ts';
import { fieldValues } from '../../../src/proxy/http/fields.ts';
import type { Protocol } from '../../../src/proxy/http/messages.ts';
import type {
  Delivery,
  DownstreamStream,
  IncomingRequest,
  LocalReply,
  OutgoingRequest,
  ResponseBody,
  ResponseHead,
  UpstreamStream,
  UpstreamStreams,
  UpstreamUser,
} from '../../../src/proxy/streams/contract.ts';
import { Transaction } from '../../../src/proxy/transaction/transaction.ts';
import type { TunnelEnd } from '../../../src/proxy/tunnel/tunnel.ts';
import { createPorts, type Ports } from './ported-transaction.ts';

/** An app's stream of no protocol, of which all that happens is written down. */
export class FakeAppStream implements DownstreamStream {
  requestComplete: boolean;
  readonly awaitsContinue = false;
  readonly offeredProtocols = undefined;
  head: ResponseHead | undefined;
  body = '';
  trailers: readonly string[] | undefined;
  own: LocalReply | undefined;
  wasCut = false;
  held = false;

  constructor(requestComplete: boolean) {
    this.requestComplete = requestComplete;
  }

  ownerFor(): undefined {}
  sendInterim(): void {}
  respond(head: ResponseHead): void {
    this.head = head;
  }
  data(slice: Buffer): void {
    this.body += slice.toString('latin1');
  }
  flush(): boolean {
    return true;
  }
  end(trailers: readonly string[]): void {
    this.trailers = trailers;
  }
  sendLocalReply(own: LocalReply): void {
    this.own = own;
  }
  cut(): void {
    this.wasCut = true;
  }
  pause(): void {
    this.held = true;
  }
  resume(): void {
    this.held = false;
  }
  becomeTunnel(): void {}
  detach(): undefined {}
}

/** A stream to an upstream that does what the test says. */
export class FakeUpstreamStream implements UpstreamStream {
  readonly protocol: Protocol = 'h2';
  readonly ready = true;
  readonly drained = true;
  readonly heldBytes = 0;
  readonly user: UpstreamUser;
  request: OutgoingRequest | undefined;
  sent = '';
  ended = false;
  held = false;
  /** Why nobody waits for its answer any more. */
  over: 'discarded' | 'abandoned' | undefined;

  constructor(user: UpstreamUser) {
    this.user = user;
  }

  get tunnelEnd(): TunnelEnd {
    throw new Error('no test makes a tunnel of it');
  }
  tie(): void {}
  send(request: OutgoingRequest): void {
    this.request = request;
  }
  data(slice: Buffer): void {
    this.sent += slice.toString('latin1');
  }
  end(): void {
    this.ended = true;
  }
  flush(): boolean {
    return true;
  }
  touch(): void {}
  pause(): void {}
  resume(): void {}
  holdResponse(): void {
    this.held = true;
  }
  releaseResponse(): void {
    this.held = false;
    this.#then?.();
  }
  cancel(how?: { readonly drain: boolean }): void {
    if (how?.drain) this.over = 'discarded';
    else this.over ??= 'abandoned';
  }
  release(): void {}

  /** What comes after the head, held while the user wants it held. */
  #then: (() => void) | undefined;

  /** Answers with these fields and, where there is one, a body; `trailers` end it. */
  answer(fields: string[], { status = 200, body, trailers }: Answered = {}): void {
    const kind: ResponseBody = body === undefined && trailers === undefined ? 'none' : 'open';
    this.#then = () => {
      this.#then = undefined;
      if (body !== undefined) this.user.onData(Buffer.from(body));
      if (kind === 'none' || trailers !== undefined) this.user.onEnd(trailers ?? []);
    };
    this.user.onResponse({ status, reason: '', fields, connectionOptions: [] }, kind);
    if (!this.held && this.over === undefined) this.#then();
  }

  fail(error: SidecarError<ProxyErrorCode>, delivery: Delivery): void {
    this.user.onError(error, delivery);
  }
}

interface Answered {
  readonly status?: number;
  readonly body?: string;
  /** Absent: the answer goes on. */
  readonly trailers?: string[];
}

export interface Asked {
  readonly protocol?: Protocol;
  readonly contentType?: string;
  readonly fields?: readonly string[];
  readonly target?: string;
  /** What has come of the body; absent where the request has none. */
  readonly body?: string;
  /** Whether more of the body is to come. */
  readonly open?: boolean;
}

/** Serves one request, a gRPC call by HTTP/2 unless told otherwise, between an app's stream and the upstream's. */
export function call(asked: Asked = {}, ports: Ports = {}) {
  const upstreams: FakeUpstreamStream[] = [];
  const lend = (user: UpstreamUser): FakeUpstreamStream => {
    const stream = new FakeUpstreamStream(user);
    upstreams.push(stream);
    return stream;
  };
  const streams: UpstreamStreams = {
    negotiatedProtocol: undefined,
    acquire: (_, user) => lend(user),
    acquireFresh: (_, user) => lend(user),
    acquireForRetry: (_, user) => lend(user),
    acquireTunnel: lend,
    discardIdle() {},
    drain() {},
    close() {},
  };
  const created = createPorts({ streams, ...ports });
  const request: IncomingRequest = {
    protocol: asked.protocol ?? 'h2',
    method: 'POST',
    target: asked.target ?? '/shop.Orders/Place',
    targetForm: 'origin',
    host: 'app.test',
    fields: [
      'content-type',
      asked.contentType ?? 'application/grpc',
      'te',
      'trailers',
      ...(asked.fields ?? []),
    ],
    connectionOptions: [],
    contentLength: undefined,
  };
  const app = new FakeAppStream(asked.body === undefined && asked.open !== true);
  const transaction = new Transaction(app, created.context, request, created.clock.monotonicMs());
  transaction.begin();
  const send = (text: string, end: boolean): void => {
    if (text !== '') transaction.takeBody(Buffer.from(text));
    if (end) {
      app.requestComplete = true;
      transaction.endBody([]);
    }
    transaction.flushRequest();
  };
  if (asked.body !== undefined) send(asked.body, asked.open !== true);
  return {
    ...created,
    app,
    transaction,
    upstreams,
    send,
    upstream(index = 0): FakeUpstreamStream {
      const upstream = upstreams[index];
      if (upstream === undefined) throw new Error(`no stream ${index} was asked for`);
      return upstream;
    },
    /** The value of a field of the proxy's own answer. */
    own(name: string): string | undefined {
      return fieldValues(app.own?.fields ?? [], name)[0];
    },
    settle() {
      transaction.settle(created.clock.monotonicMs());
    },
  };
}
