/** What has been counted of one route since the start: read from the metrics, never counted for its own sake. */
export interface RouteFigures {
  /** Ended requests. */
  readonly total: number;
  readonly inFlight: number;
  /** Requests that the proxy refused or could not complete. */
  readonly errors: number;
  /** The same by error code; codes that have occurred. */
  readonly errorsByCode: ReadonlyMap<string, number>;
  /** By the first digit of their status: `classes[2]` are those of 200 to 299. */
  readonly classes: readonly number[];
  /** By duration: the bucket that ends at each of `BUCKETS_SECONDS`, and one for all that is longer. */
  readonly durations: readonly number[];
  /** Answers 401 of the upstream to an injected token, gRPC's UNAUTHENTICATED among them. */
  readonly refusedTokens: number;
  readonly grpc: {
    /** gRPC calls among the requests. */
    readonly calls: number;
    /** Those that ended with a status other than OK. */
    readonly failures: number;
  };
}
