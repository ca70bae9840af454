/** The matrix of the benchmark. */

export type Payload = keyof typeof PAYLOADS;

/** `perSecond`: the rate at which latency is measured, far below what any proxy can do. */
export const PAYLOADS = {
  small: { path: '/100b', uploadBytes: 0, perSecond: 1000, label: '100 B answers' },
  medium: { path: '/10kb', uploadBytes: 0, perSecond: 1000, label: '10 KB answers' },
  large: { path: '/1mb', uploadBytes: 0, perSecond: 50, label: '1 MB answers' },
  upload: { path: '/upload', uploadBytes: 64 * 1024, perSecond: 500, label: '64 KB uploads' },
} as const;

export type Call = keyof typeof CALLS;

/** gRPC calls: how many messages of how many bytes go, and how many come back. */
export const CALLS = {
  unary: { path: '/grpc/unary', messageBytes: 100, replies: 1, label: 'unary calls of 100 B' },
  unary64k: { path: '/grpc/unary64k', messageBytes: 64 * 1024, replies: 1, label: 'unary calls of 64 KB' },
  stream: { path: '/grpc/stream', messageBytes: 1024, replies: 100, label: 'streams of 100 replies of 1 KB' },
} as const;

interface CellBase {
  /** Spelt out of the dimensions: `tls-small-32`, `plain-large-256-4ktoken-close`, `h2-tls-unary-1x32`. */
  readonly name: string;
  readonly upstream: 'plain' | 'tls';
  /** Of the app. */
  readonly connections: number;
  readonly tokenBytes: number;
}

export interface Http1Cell extends CellBase {
  /** Absent in results that were written before there was HTTP/2. */
  readonly protocol?: 'http1';
  readonly payload: Payload;
  /** Whether the app keeps its connections. */
  readonly keepAlive: boolean;
  /** The sidecar's token is bound to a key, and each request has a proof. The others have the usual token. */
  readonly bound?: true;
  /** How much longer than others latency is measured. */
  readonly latencyWeight: number;
}

/** HTTP/2 on both sides. */
export interface Http2Cell extends CellBase {
  readonly protocol: 'http2';
  readonly call: Call;
  /** In flight at once on each connection. */
  readonly streams: number;
}

export type Cell = Http1Cell | Http2Cell;

const SMALL_TOKEN = 900;
const LARGE_TOKEN = 4096;

const UPSTREAMS = ['plain', 'tls'] as const;

const DIMENSIONS = {
  upstream: UPSTREAMS,
  payload: Object.keys(PAYLOADS) as Payload[],
  connections: [1, 32, 256],
  tokenBytes: [SMALL_TOKEN, LARGE_TOKEN],
  keepAlive: [true, false],
} as const;

/** Connections, and streams on each. */
const SHAPES = [
  [1, 32],
  [32, 1],
  [256, 4],
] as const;

/** Judged by name: see targets.ts. */
export const REFERENCE = cell('tls', 'small', 32);
export const PLAIN = cell('plain', 'small', 32);
export const LARGE = cell('tls', 'large', 32);
export const MANY = cell('tls', 'small', 256);
export const BOUND: Http1Cell = { ...REFERENCE, name: `${REFERENCE.name}-dpop`, bound: true };
/** A connection for each request. */
export const CLOSING = UPSTREAMS.map((upstream) => cell(upstream, 'small', 32, SMALL_TOKEN, false));
export const UPLOADS = UPSTREAMS.map((upstream) => cell(upstream, 'upload', 32));
export const ONE_CONNECTION = UPSTREAMS.map((upstream) => http2Cell(upstream, 'unary', 1, 32));
export const ONE_STREAM_EACH = UPSTREAMS.map((upstream) => http2Cell(upstream, 'unary', 32, 1));
export const MANY_STREAMS = http2Cell('tls', 'unary', 256, 4);

/** Every value of every dimension at least once, each beside the reference cell, and every cell that has a target. */
export const DEFAULT_CELLS: readonly Cell[] = [
  REFERENCE,
  BOUND,
  PLAIN,
  cell('tls', 'small', 1),
  MANY,
  cell('tls', 'medium', 32),
  LARGE,
  ...UPLOADS,
  cell('tls', 'small', 32, LARGE_TOKEN),
  ...CLOSING,
  ...ONE_CONNECTION,
  ...ONE_STREAM_EACH,
  MANY_STREAMS,
  http2Cell('tls', 'unary64k', 1, 32),
  http2Cell('tls', 'stream', 1, 32),
];

export const ALL_CELLS: readonly Cell[] = [
  BOUND,
  ...DIMENSIONS.upstream.flatMap((upstream) =>
    DIMENSIONS.payload.flatMap((payload) =>
      DIMENSIONS.connections.flatMap((connections) =>
        DIMENSIONS.tokenBytes.flatMap((tokenBytes) =>
          DIMENSIONS.keepAlive.map((keepAlive) =>
            cell(upstream, payload, connections, tokenBytes, keepAlive),
          ),
        ),
      ),
    ),
  ),
  ...UPSTREAMS.flatMap((upstream) =>
    (Object.keys(CALLS) as Call[]).flatMap((call) =>
      SHAPES.map(([connections, streams]) => http2Cell(upstream, call, connections, streams)),
    ),
  ),
];

function cell(
  upstream: Cell['upstream'],
  payload: Payload,
  connections: number,
  tokenBytes = SMALL_TOKEN,
  keepAlive = true,
): Http1Cell {
  const name = [
    upstream,
    payload,
    connections,
    ...(tokenBytes === SMALL_TOKEN ? [] : ['4ktoken']),
    ...(keepAlive ? [] : ['close']),
  ].join('-');
  // Where a target is about the 99th percentile, of which a second holds ten samples.
  const isJudgedByLatency = /^(tls-small-32|(plain|tls)-small-32-close)$/.test(name);
  const latencyWeight = isJudgedByLatency ? 5 : 1;
  return { name, protocol: 'http1', upstream, payload, connections, tokenBytes, keepAlive, latencyWeight };
}

function http2Cell(upstream: Cell['upstream'], call: Call, connections: number, streams: number): Http2Cell {
  const name = `h2-${upstream}-${call}-${connections}x${streams}`;
  return { name, protocol: 'http2', upstream, call, connections, streams, tokenBytes: SMALL_TOKEN };
}

/** Of either side. */
export function protocolOf(cell: { readonly protocol?: Cell['protocol'] }): 'http1' | 'http2' {
  return cell.protocol ?? 'http1';
}

export function describeCell(cell: Cell): string {
  const { upstream, connections, tokenBytes } = cell;
  const plural = connections === 1 ? '' : 's';
  const isBound = cell.protocol !== 'http2' && cell.bound === true;
  const token = `${tokenBytes}-byte token${isBound ? ', bound to a key at the sidecar' : ''}`;
  if (cell.protocol === 'http2') {
    const towards = upstream === 'tls' ? 'HTTP/2 over TLS' : 'h2c';
    return `${CALLS[cell.call].label}, ${towards} upstream, ${connections} connection${plural} × ${cell.streams}, ${token}`;
  }
  const closing = cell.keepAlive ? '' : 'closing ';
  const towards = upstream === 'tls' ? 'TLS' : 'plain';
  return `${PAYLOADS[cell.payload].label}, ${towards} upstream, ${connections} ${closing}connection${plural}, ${token}`;
}
