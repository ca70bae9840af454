/** What a code means, for somebody who has just met it. */
export interface Explanation {
  readonly title: string;
  /** Why it is an error and what usually causes it; plain sentences. */
  readonly text: string;
  /** What is written by mistake, and what is right; lines of a file, or of a shell. */
  readonly wrong?: string;
  readonly right?: string;
  /** What to do, in one sentence. */
  readonly remedy?: string;
}
