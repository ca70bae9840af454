/** How large a head may be, and in the same way a trailer section. */
export interface HeadLimits {
  readonly headerBytes: number;
  /** Fields. */
  readonly headerCount: number;
  readonly targetBytes: number;
}
