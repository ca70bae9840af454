import { GRPC_STATUS, type GrpcStatus } from '../platform/grpc-status.ts';
import { Counter, type Registry } from '../platform/prometheus.ts';

/** Services may send any number: all that gRPC does not define share one label. */
const LABELS: readonly string[] = [...Object.values(GRPC_STATUS).map(String), 'other', 'none'];
const OTHER = LABELS.indexOf('other');
const NONE = LABELS.indexOf('none');

/** Ended gRPC calls of one route, by their status. */
export class GrpcTally {
  /** Since the start. */
  calls = 0;
  /** Those that ended with a status other than OK. */
  failures = 0;
  /** Per status, the calls not yet added to the counter. */
  readonly #uncounted = new Float64Array(LABELS.length);

  count(status: GrpcStatus | undefined): void {
    const index = status === undefined ? NONE : status === 'other' ? OTHER : status;
    this.#uncounted[index] = (this.#uncounted[index] as number) + 1;
    this.calls += 1;
    if (index !== GRPC_STATUS.OK && index !== NONE) this.failures += 1;
  }

  /** Hands over what has been counted since the last time. */
  take(add: (status: string, count: number) => void): void {
    for (const [index, count] of this.#uncounted.entries()) {
      if (count === 0) continue;
      this.#uncounted[index] = 0;
      add(LABELS[index] as string, count);
    }
  }
}

/** Registers `token_sidecar_proxy_grpc_calls_total`. */
export function createGrpcTallies(registry: Registry): {
  forRoute(route: string): GrpcTally;
  forget(route: string): void;
} {
  const tallies = new Map<string, GrpcTally>();
  new Counter({
    name: 'token_sidecar_proxy_grpc_calls_total',
    help: 'gRPC calls that have ended, by grpc-status; none where the app got no status.',
    labelNames: ['route', 'grpc_status'] as const,
    registers: [registry],
    collect() {
      for (const [route, tally] of tallies) {
        tally.take((grpc_status, count) => this.inc({ route, grpc_status }, count));
      }
    },
  });
  return {
    forRoute(route) {
      const tally = new GrpcTally();
      tallies.set(route, tally);
      return tally;
    },
    forget: (route) => tallies.delete(route),
  };
}
