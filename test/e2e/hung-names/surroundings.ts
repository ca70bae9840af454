/** What the test and its world know. */

/** What hangs beside what is measured. */
export interface Hanging {
  /** Names of upstreams, each of a route of its own. */
  readonly upstreams: number;
  /** Names that an app asks for by the forward proxy, ever others. */
  readonly flood: boolean;
  /** The provider of another credential, and the collector of spans. */
  readonly own: boolean;
  /** Before, nothing was answered for so long that all names were given up. */
  readonly outage?: boolean;
}

export interface Outcome {
  /** The 99th percentile of requests to routes whose names are answered, while no name hangs. Milliseconds. */
  readonly quietMs: number;
  /** The slowest of such requests while others hang. Milliseconds. */
  readonly slowestMs: number;
  readonly requests: number;
  /** Answers to such requests other than 200, with their number. */
  readonly failed: Readonly<Record<string, number>>;
  /** Answers to requests for names that hang, with their number. */
  readonly hung: Readonly<Record<string, number>>;
  /** The same for names that the app chose. */
  readonly flooded: Readonly<Record<string, number>>;
  /** Grants meanwhile. */
  readonly grants: number;
  /** Lines of the log that tell of a grant that failed, but for those of the provider that hangs. */
  readonly failedGrants: readonly string[];
  /** Threads of the sidecar's pool. */
  readonly poolThreads: number;
}
