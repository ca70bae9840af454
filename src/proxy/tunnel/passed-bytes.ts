/**
 * How much of one request has passed: of its body and its answer's, without what frames them; of a tunnel, all of it. Bytes.
 */
export interface PassedBytes {
  fromApp: number;
  toApp: number;
}
