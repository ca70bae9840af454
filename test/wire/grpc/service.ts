import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { type Arrived, HTTP2, type NodeUpstream, startHttp2 } from '../http2-upstream/node-upstream.ts';
import { type Sidecar, type SidecarSettings, startSidecar } from '../sidecar.ts';
import { framed, MessageReader } from './framing.ts';

const HEAD = { ':status': 200, 'content-type': 'application/grpc+proto' };

/** One call as the service sees it. */
export class ServedCall {
  readonly stream: ServerHttp2Stream;
  readonly metadata: IncomingHttpHeaders;
  /** Name, value, …, as they came. */
  readonly raw: readonly string[];
  #whole: Promise<readonly string[]> | undefined;

  constructor({ stream, headers, raw }: Arrived) {
    this.stream = stream;
    this.metadata = headers;
    this.raw = raw;
  }

  get authorization(): string | undefined {
    return this.metadata.authorization;
  }

  /** Every message of the app, once it has sent its last. */
  messages(): Promise<readonly string[]> {
    this.#whole ??= this.#read();
    return this.#whole;
  }

  /** Ends the call before its first message, by a head that is trailers only. */
  refuse(status: number, message = 'no'): void {
    const trailers = { 'grpc-status': String(status), 'grpc-message': message };
    this.stream.respond({ ...HEAD, ...trailers }, { endStream: true });
  }

  /** Begins the answer; `finish` ends it. */
  begin(metadata: OutgoingHttpHeaders = {}): this {
    this.stream.respond({ ...HEAD, ...metadata }, { waitForTrailers: true });
    return this;
  }

  send(message: string): this {
    this.stream.write(framed(message));
    return this;
  }

  /** Ends a begun answer with its trailers. */
  finish(status: number, metadata: OutgoingHttpHeaders = {}): void {
    this.stream.on('wantTrailers', () =>
      this.stream.sendTrailers({ 'grpc-status': String(status), ...metadata }),
    );
    this.stream.end();
  }

  async #read(): Promise<readonly string[]> {
    const reader = new MessageReader();
    for await (const piece of this.stream) reader.add(piece as Buffer);
    return reader.messages;
  }
}

export interface Service {
  readonly upstream: NodeUpstream;
  readonly calls: readonly ServedCall[];
}

/** A gRPC service of `node:http2`, over TLS or plain as the run has it. */
export async function startService(serve: (call: ServedCall) => void | Promise<void>): Promise<Service> {
  const calls: ServedCall[] = [];
  const upstream = await startHttp2((arrived) => {
    const call = new ServedCall(arrived);
    calls.push(call);
    return serve(call);
  });
  return { upstream, calls };
}

/** Takes one message, answers with another. */
export async function echo(call: ServedCall): Promise<void> {
  const [message] = await call.messages();
  call.begin().send(`echo ${message}`).finish(0);
}

/** A sidecar before the service. */
export function sidecarBefore(
  { upstream }: Service,
  { route, ...settings }: Omit<SidecarSettings, 'upstream' | 'routes'> = {},
): Promise<Sidecar> {
  return startSidecar({ ...settings, upstream, route: { protocol: HTTP2, ...route } });
}
