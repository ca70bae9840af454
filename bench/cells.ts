/** The matrix of the benchmark. */

export type Payload = keyof typeof PAYLOADS;

/** `perSecond`: the rate at which latency is measured, far below what any proxy can do. */
export const PAYLOADS = {
  small: { path: '/100b', uploadBytes: 0, perSecond: 1000, label: '100 B answers' },
  medium: { path: '/10kb', uploadBytes: 0, perSecond: 1000, label: '10 KB answers' },
  large: { path: '/1mb', uploadBytes: 0, perSecond: 50, label: '1 MB answers' },
  upload: { path: '/upload', uploadBytes: 64 * 1024, perSecond: 500, label: '64 KB uploads' },
} as const;

export interface Cell {
  /** Spelt out of the dimensions: `tls-small-32`, `plain-large-256-4ktoken-close`. */
  readonly name: string;
  readonly upstream: 'plain' | 'tls';
  readonly payload: Payload;
  readonly connections: number;
  readonly tokenBytes: number;
  /** Whether the app keeps its connections. */
  readonly keepAlive: boolean;
  /** How much longer than others latency is measured. */
  readonly latencyWeight: number;
}

const SMALL_TOKEN = 900;
const LARGE_TOKEN = 4096;

const DIMENSIONS = {
  upstream: ['plain', 'tls'],
  payload: Object.keys(PAYLOADS) as Payload[],
  connections: [1, 32, 256],
  tokenBytes: [SMALL_TOKEN, LARGE_TOKEN],
  keepAlive: [true, false],
} as const;

/** Judged by name: see targets.ts. */
export const REFERENCE = cell('tls', 'small', 32);
export const PLAIN = cell('plain', 'small', 32);
export const LARGE = cell('tls', 'large', 32);
export const MANY = cell('tls', 'small', 256);

/** Every value of every dimension at least once, each beside the reference cell, and every cell that has a target. */
export const DEFAULT_CELLS: readonly Cell[] = [
  REFERENCE,
  PLAIN,
  cell('tls', 'small', 1),
  MANY,
  cell('tls', 'medium', 32),
  LARGE,
  cell('tls', 'upload', 32),
  cell('tls', 'small', 32, LARGE_TOKEN),
  cell('tls', 'small', 32, SMALL_TOKEN, false),
];

export const ALL_CELLS: readonly Cell[] = DIMENSIONS.upstream.flatMap((upstream) =>
  DIMENSIONS.payload.flatMap((payload) =>
    DIMENSIONS.connections.flatMap((connections) =>
      DIMENSIONS.tokenBytes.flatMap((tokenBytes) =>
        DIMENSIONS.keepAlive.map((keepAlive) => cell(upstream, payload, connections, tokenBytes, keepAlive)),
      ),
    ),
  ),
);

function cell(
  upstream: Cell['upstream'],
  payload: Payload,
  connections: number,
  tokenBytes = SMALL_TOKEN,
  keepAlive = true,
): Cell {
  const name = [
    upstream,
    payload,
    connections,
    ...(tokenBytes === SMALL_TOKEN ? [] : ['4ktoken']),
    ...(keepAlive ? [] : ['close']),
  ].join('-');
  const latencyWeight = name === 'tls-small-32' ? 5 : 1;
  return { name, upstream, payload, connections, tokenBytes, keepAlive, latencyWeight };
}

export function describeCell({ upstream, payload, connections, tokenBytes, keepAlive }: Cell): string {
  return [
    `${PAYLOADS[payload].label}, ${upstream === 'tls' ? 'TLS' : 'plain'} upstream`,
    `${connections} ${keepAlive ? '' : 'closing '}connection${connections === 1 ? '' : 's'}`,
    `${tokenBytes}-byte token`,
  ].join(', ');
}
