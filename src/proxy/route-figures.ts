/** What has been counted for one route since the start: read from the metrics, never counted separately. */
export interface RouteFigures {
  /** Finished requests. */
  readonly total: number;
  readonly inFlight: number;
  /** Requests that the proxy refused or could not complete. */
  readonly errors: number;
  /** Errors by code; only codes that have occurred. */
  readonly errorsByCode: ReadonlyMap<string, number>;
  /** By the first digit of the status: `classes[2]` counts 200 to 299. */
  readonly classes: readonly number[];
  /** By duration: the bucket that ends at each of `BUCKETS_SECONDS`, and one for anything longer. */
  readonly durations: readonly number[];
  /** The upstream's 401 answers to an injected token, gRPC's UNAUTHENTICATED included. */
  readonly refusedTokens: number;
  readonly grpc: {
    /** gRPC calls among the requests. */
    readonly calls: number;
    /** Calls that ended with a status other than OK. */
    readonly failures: number;
  };
}
