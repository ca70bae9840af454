/** What the sidecar is to reach, judged by figures of one and the same run. */

import {
  BOUND,
  CLOSING,
  DEFAULT_CELLS,
  type Http1Cell,
  type Http2Cell,
  LARGE,
  MANY,
  MANY_STREAMS,
  ONE_CONNECTION,
  ONE_STREAM_EACH,
  PLAIN,
  REFERENCE,
  UPLOADS,
} from './cells.ts';
import { type BenchmarkResult, median, type Summary, summarize } from './results.ts';

export interface Verdict {
  readonly subject: string;
  readonly bound: string;
  /** Undefined where the run lacks a cell or a proxy that it takes. */
  readonly figure: string | undefined;
  readonly isMet: boolean | undefined;
}

/** Of memory: 10^6 bytes. */
export const MEGABYTE = 1e6;

const IDLE_BYTES = 25 * MEGABYTE;
const LOADED_BYTES = 45 * MEGABYTE;
/** Of connections that close, and of uploads. */
const CHURN_BYTES = 40 * MEGABYTE;
const MANY_STREAMS_BYTES = 50 * MEGABYTE;
const START_MS = 120;
const LATENCY_MARGIN_US = 500;
const PROOF_US = 60;

export function judge(result: BenchmarkResult): readonly Verdict[] {
  const figures = (cell: { readonly name: string }, proxy: string): Summary | undefined => {
    const found = result.cells.find((each) => each.cell.name === cell.name);
    const ofProxy = found?.proxies[proxy];
    return found === undefined || ofProxy === undefined ? undefined : summarize(ofProxy, found.direct);
  };

  const cpu = (cell: { readonly name: string }, subject: string, peer: string, ratio: number): Verdict => {
    const own = figures(cell, 'sidecar')?.cpuUsPerRequest;
    const its = figures(cell, peer)?.cpuUsPerRequest;
    return compare(subject, `≤ ${ratio} × ${peer}`, own, its, (a, b) => ({
      figure: `${(a / b).toFixed(2)} × (${a.toFixed(1)} µs, ${b.toFixed(1)} µs)`,
      isMet: a <= ratio * b,
    }));
  };

  const memory = (cell: Http1Cell, subject: string): Verdict =>
    bounded(
      subject,
      '≤ 40 MB',
      figures(cell, 'sidecar')?.loaded.anonymousBytes,
      CHURN_BYTES,
      (bytes) => `${megabytes(bytes)} MB`,
    );

  const start = result.starts['sidecar'];
  const starts = Math.max(start?.toFirstConnectionMs ?? Number.NaN, start?.toLogLineMs ?? 0);
  const idle = median(result.cells.flatMap((each) => each.proxies['sidecar']?.idle.anonymousBytes ?? []));
  return [
    ...DEFAULT_CELLS.filter((cell) => cell !== BOUND).map((cell) =>
      cpu(cell, `CPU, ${cell.name}`, 'envoy', 1),
    ),
    compare(
      'CPU of a proof, TLS upstream, 32 connections',
      '≤ 60 µs more than without',
      figures(BOUND, 'sidecar')?.cpuUsPerRequest,
      figures(REFERENCE, 'sidecar')?.cpuUsPerRequest,
      (a, b) => ({
        figure: `${(a - b).toFixed(1)} µs (${a.toFixed(1)} µs, ${b.toFixed(1)} µs)`,
        isMet: a - b <= PROOF_US,
      }),
    ),
    compare(
      'added p99 with proofs, at 1,000 requests/s',
      '≤ 3 × without',
      figures(BOUND, 'sidecar')?.addedP99Us,
      figures(REFERENCE, 'sidecar')?.addedP99Us,
      (a, b) => ({ figure: `${milliseconds(a)} ms, without ${milliseconds(b)} ms`, isMet: a <= 3 * b }),
    ),
    cpu(REFERENCE, CPU_TLS, 'nginx', 1.3),
    cpu(REFERENCE, CPU_TLS, 'http-proxy', 0.25),
    cpu(REFERENCE, CPU_TLS, 'envoy', 0.6),
    cpu(PLAIN, 'CPU per small request, plain upstream, 32 connections', 'nginx', 1.5),
    compare(
      'throughput of 1 MB answers, TLS upstream',
      '≥ 0.8 × nginx',
      figures(LARGE, 'sidecar')?.bytesPerSecond,
      figures(LARGE, 'nginx')?.bytesPerSecond,
      (a, b) => ({
        figure: `${(a / b).toFixed(2)} × (${megabytes(a)} MB/s, ${megabytes(b)} MB/s)`,
        isMet: a >= 0.8 * b,
      }),
    ),
    compare(
      'added p99 at 1,000 requests/s',
      "≤ nginx's + 0.5 ms",
      figures(REFERENCE, 'sidecar')?.addedP99Us,
      figures(REFERENCE, 'nginx')?.addedP99Us,
      (a, b) => ({
        figure: `${milliseconds(a)} ms, nginx ${milliseconds(b)} ms`,
        isMet: a <= b + LATENCY_MARGIN_US,
      }),
    ),
    bounded('anonymous memory, idle', '≤ 25 MB', idle, IDLE_BYTES, (bytes) => `${megabytes(bytes)} MB`),
    bounded(
      'anonymous memory, loaded, 256 connections',
      '≤ 45 MB',
      figures(MANY, 'sidecar')?.loaded.anonymousBytes,
      LOADED_BYTES,
      (bytes) => `${megabytes(bytes)} MB`,
    ),
    cpu(MANY, 'CPU per small request, TLS upstream, 256 connections', 'nginx', 1.5),
    ...CLOSING.flatMap((cell) => [
      cpu(cell, `CPU per connection that closes, ${UPSTREAM_OF(cell)}`, 'nginx', 2.2),
      memory(cell, `anonymous memory, connections that close, ${UPSTREAM_OF(cell)}`),
      compare(
        `added p99 of connections that close, ${UPSTREAM_OF(cell)}`,
        "≤ envoy's",
        figures(cell, 'sidecar')?.addedP99Us,
        figures(cell, 'envoy')?.addedP99Us,
        (a, b) => ({ figure: `${milliseconds(a)} ms, envoy ${milliseconds(b)} ms`, isMet: a <= b }),
      ),
    ]),
    ...UPLOADS.flatMap((cell) => [
      cpu(cell, `CPU per upload of 64 KB, ${UPSTREAM_OF(cell)}`, 'nginx', 1.3),
      memory(cell, `anonymous memory, uploads, ${UPSTREAM_OF(cell)}`),
    ]),
    ...ONE_CONNECTION.flatMap((cell) => [
      cpu(cell, CPU_OF_CALL(cell), 'haproxy', 1.25),
      cpu(cell, CPU_OF_CALL(cell), 'envoy', 0.6),
    ]),
    ...ONE_STREAM_EACH.map((cell) => cpu(cell, CPU_OF_CALL(cell), 'envoy', 0.7)),
    bounded(
      'anonymous memory, loaded, 256 HTTP/2 connections × 4 streams',
      '≤ 50 MB',
      figures(MANY_STREAMS, 'sidecar')?.loaded.anonymousBytes,
      MANY_STREAMS_BYTES,
      (bytes) => `${megabytes(bytes)} MB`,
    ),
    bounded('start to listening', '≤ 120 ms', starts, START_MS, (ms) => `${ms.toFixed(0)} ms`),
  ];
}

const UPSTREAM_OF = ({ upstream }: Http1Cell): string => `${upstream === 'tls' ? 'TLS' : 'plain'} upstream`;

const CPU_OF_CALL = ({ upstream, connections, streams }: Http2Cell): string =>
  `CPU per unary call, ${upstream === 'tls' ? 'TLS' : 'h2c'} upstream, ${connections} × ${streams}`;

const CPU_TLS = 'CPU per small request, TLS upstream, 32 connections';

function compare(
  subject: string,
  bound: string,
  own: number | undefined,
  peer: number | undefined,
  decide: (own: number, peer: number) => { figure: string; isMet: boolean },
): Verdict {
  if (own === undefined || peer === undefined) return { subject, bound, figure: undefined, isMet: undefined };
  return { subject, bound, ...decide(own, peer) };
}

/** `show` formats the figure; NaN counts as not measured. */
export function bounded(
  subject: string,
  bound: string,
  figure: number | undefined,
  limit: number,
  show: (figure: number) => string,
): Verdict {
  if (figure === undefined || Number.isNaN(figure))
    return { subject, bound, figure: undefined, isMet: undefined };
  return { subject, bound, figure: show(figure), isMet: figure <= limit };
}

export function megabytes(bytes: number): string {
  return (bytes / MEGABYTE).toFixed(bytes < 10 * MEGABYTE ? 1 : 0);
}

export function milliseconds(microseconds: number): string {
  return (microseconds / 1000).toFixed(2);
}
