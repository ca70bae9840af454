export interface LoadTarget {
  readonly protocol: 'http' | 'https';
  readonly port: number;
}

/** What a program has found that loads as fast as it is answered. */
export interface LoadFigures {
  /** That were answered. */
  readonly requests: number;
  readonly durationUs: number;
  /** Of answers, heads included. */
  readonly bytes: number;
  /** Answers with a status of 400 or more. */
  readonly refused: number;
  /** Connections or streams refused, reset or timed out. */
  readonly failed: number;
}
