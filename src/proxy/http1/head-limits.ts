/** Limits of a head, and likewise of a trailer section. */
export interface HeadLimits {
  readonly headerBytes: number;
  /** Fields. */
  readonly headerCount: number;
  readonly targetBytes: number;
}
