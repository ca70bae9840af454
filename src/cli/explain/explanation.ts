/** The meaning of a code, for somebody who has just met it. */
export interface Explanation {
  readonly title: string;
  /** Why it is an error and what usually causes it; plain sentences. */
  readonly text: string;
  /** A typical mistake, and its correction; lines of a file or shell. */
  readonly wrong?: string;
  readonly right?: string;
  /** What to do, in one sentence. */
  readonly remedy?: string;
}
