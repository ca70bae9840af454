/**
 * A walk: what app, upstream, token source and clock do, one step after the other. It is plain data, so that it can be
 * made from a seed, repeated, shrunk and written down.
 */

/** How far what was begun goes before the next step. */
export type Pace =
  /** The next step follows in the same turn of the event loop: both are seen at once. */
  | 'same turn'
  | 'next turn'
  /** Everything that the step can cause has happened. */
  | 'settled';

export type Version = 'h2' | 'http/1.1';

export type Method = 'DELETE' | 'GET' | 'HEAD' | 'PATCH' | 'POST' | 'PUT';

export type ResponseFraming = 'chunked' | 'close' | 'length';

/** Where a message stops until its sender goes on. */
export type Stop = 'in the head' | 'after the head' | 'in the body' | 'whole';

/** What becomes of the upstream's side of the connection after what it has sent, in the same turn. */
export type Afterwards = 'ends' | 'resets' | 'stays';

/** `app` and `upstream` pick one of the connections that can take the step, whichever there are by then. */
export type Action =
  | { readonly do: 'app opens' }
  | {
      readonly do: 'app asks';
      readonly app: number;
      readonly method: Method;
      readonly body: 'chunked' | 'length' | 'none';
      readonly bytes: number;
      readonly version: '1.0' | '1.1';
      readonly closes: boolean;
      readonly stops: Stop;
      /** A call of gRPC, where both sides speak HTTP/2. */
      readonly grpc: boolean;
    }
  | { readonly do: 'app goes on'; readonly app: number }
  | { readonly do: 'app ends'; readonly app: number }
  | { readonly do: 'app leaves'; readonly app: number; readonly how: 'closes' | 'resets' }
  | { readonly do: 'app stops reading'; readonly app: number }
  | { readonly do: 'app reads on'; readonly app: number }
  | { readonly do: 'app resets a stream'; readonly app: number }
  | { readonly do: 'app says goodbye'; readonly app: number }
  /** Until it reads on. */
  | { readonly do: 'app shuts its windows'; readonly app: number }
  | {
      readonly do: 'upstream answers';
      readonly upstream: number;
      readonly status: 200 | 204 | 304 | 401 | 500;
      readonly framing: ResponseFraming;
      readonly bytes: number;
      readonly closes: boolean;
      readonly keepAlive: number | undefined;
      readonly stops: Stop;
      readonly afterwards: Afterwards;
    }
  | { readonly do: 'upstream goes on'; readonly upstream: number; readonly afterwards: Afterwards }
  | { readonly do: 'upstream informs'; readonly upstream: number; readonly status: 100 | 103 }
  | { readonly do: 'upstream says more'; readonly upstream: number }
  | { readonly do: 'upstream ends'; readonly upstream: number; readonly idle: boolean }
  | { readonly do: 'upstream resets'; readonly upstream: number; readonly idle: boolean }
  | { readonly do: 'upstream stops reading'; readonly upstream: number }
  | { readonly do: 'upstream reads on'; readonly upstream: number }
  | {
      readonly do: 'upstream resets a stream';
      readonly upstream: number;
      readonly code: 'cancelled' | 'failed' | 'refused';
    }
  /** By GOAWAY; `unprocessed`: it has not looked at those that it has not answered. */
  | { readonly do: 'upstream says goodbye'; readonly upstream: number; readonly unprocessed: boolean }
  /** Until it reads on. */
  | { readonly do: 'upstream shuts its windows'; readonly upstream: number }
  | { readonly do: 'upstream allows'; readonly upstream: number; readonly streams: number }
  /** Connections that are asked for from now on are made at once, later, or not at all. */
  | { readonly do: 'connections'; readonly are: 'made' | 'held' | 'refused' }
  | { readonly do: 'token ends' }
  | { readonly do: 'token is granted'; readonly lifetimeMs: number }
  | { readonly do: 'token is refused' }
  | { readonly do: 'time passes'; readonly ms: number }
  /** Both clocks jump by what they like, and what came meanwhile is seen with the timers that are due. */
  | {
      readonly do: 'process is suspended';
      readonly monotonicMs: number;
      readonly wallMs: number;
      readonly timersFirst: boolean;
    }
  | { readonly do: 'drain begins' };

export type Step = Action & { readonly pace: Pace };

export interface Walk {
  readonly transport: 'plain' | 'tls';
  /** What the apps speak, and what the upstream does. */
  readonly app: Version;
  readonly upstream: Version;
  /** Whether the token source answers by itself, or when the walk says so. */
  readonly renewal: 'at once' | 'by the walk';
  readonly steps: readonly Step[];
}

/** Bounds that the data path is given, ms. */
export const BOUNDS = {
  connectMs: 5_000,
  responseMs: 10_000,
  idleMs: 20_000,
  headerMs: 5_000,
  keepAliveMs: 30_000,
} as const;

/** The largest request body that the data path is told to keep for a replay. */
export const REPLAY_BYTES = 1024;
