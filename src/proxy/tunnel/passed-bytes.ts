/** Bytes that have passed for one request: of its body and its answer's, without framing; of a tunnel, all of them. */
export interface PassedBytes {
  fromApp: number;
  toApp: number;
}
