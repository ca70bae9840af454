import { bodyOf } from './message.ts';
import { type Method, REPLAY_BYTES } from './walk.ts';

const REPEATABLE: ReadonlySet<Method> = new Set(['DELETE', 'GET', 'HEAD', 'PUT']);

/** An answer as the upstream sent it. */
export interface SentAnswer {
  readonly status: number;
  /** What its body is, whole; what is delimited by the end of the connection may turn out shorter. */
  body: Buffer;
  /** Whether all of it was sent, its end included. */
  complete: boolean;
  /** Whether enough of it was sent for the data path to tell which request it is for. */
  begun: boolean;
  /** By 401, or by gRPC's UNAUTHENTICATED in trailers alone. */
  readonly refusesToken: boolean;
}

/** A request, or a part of it, that came to the upstream. */
export interface Arrival {
  readonly asked: AskedRequest;
  /** Names the answer. */
  readonly name: string;
  readonly connection: number;
  /** Over HTTP/2. */
  readonly stream: number | undefined;
  readonly authorization: string;
  whole: boolean;
  answer: SentAnswer | undefined;
  /** The upstream broke the connection off, or made it unusable, before the answer to this was safe. */
  broken: boolean;
  /** The upstream says that it has not looked at it (RFC 9113 §8.7). */
  unprocessed: boolean;
  /** The upstream has ended its stream, and nothing beside. */
  reset: boolean;
}

/** A request head that was written to a connection. */
export interface Departure {
  readonly connection: number;
  /** Over HTTP/2. */
  readonly stream: number | undefined;
  /** Whether it had been used before. */
  readonly reused: boolean;
  readonly authorization: string;
}

/** One request that an app asked, and all that became of it. */
export class AskedRequest {
  readonly id: number;
  readonly method: Method;
  readonly body: Buffer;
  /** Whether it is a call of gRPC. */
  readonly grpc: boolean;
  readonly arrivals: Arrival[] = [];
  /** To connections that were alive for all that the data path had been told. */
  readonly departures: Departure[] = [];
  /** Whether the app has sent it whole. */
  whole = false;
  /** Its app has an answer, or waits for none any more. */
  over = false;
  /** How far the clocks had moved when the app's connection was last used before it. */
  readonly sinceMs: number;
  /** The walk had connections refused while it was under way. */
  connectionsRefused = false;
  tokenRefused = false;
  /** How often the upstream has broken something off while it was under way, or so shortly before that nobody knew. */
  disturbances = 0;
  /** Its answer had come before the clocks jumped: they excuse nothing. */
  answeredInTime = false;
  /** How far the clocks had moved before a jump, while nobody has looked since whether it was answered by then. */
  mayBeAnsweredAtMs: number | undefined;

  constructor(
    id: number,
    { method, bytes, grpc }: { readonly method: Method; readonly bytes: number; readonly grpc: boolean },
    sinceMs: number,
  ) {
    this.id = id;
    this.method = method;
    this.body = bodyOf(`request ${id}`, bytes);
    this.grpc = grpc;
    this.sinceMs = sinceMs;
  }

  /** Whether the data path has to send it again when a reused connection dies without an answer (RFC 9110 §9.2.2). */
  get repeatable(): boolean {
    return REPEATABLE.has(this.method) && this.body.length <= REPLAY_BYTES;
  }

  get idempotent(): boolean {
    return REPEATABLE.has(this.method);
  }

  get lastArrival(): Arrival | undefined {
    return this.arrivals.at(-1);
  }

  toString(): string {
    return `request ${this.id} (${this.method}, ${this.body.length} bytes)`;
  }
}
