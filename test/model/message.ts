/** A message as a peer of the data path has read it; one of HTTP/2 has a start line made up for it. */
export interface Message {
  readonly startLine: string;
  /** Trailers, too, where they have come. */
  readonly fields: ReadonlyMap<string, string>;
  /** Its body so far. */
  readonly body: Buffer[];
  bodyBytes: number;
}

/** A body that tells whose it is wherever it is cut. */
export function bodyOf(name: string, bytes: number): Buffer {
  return Buffer.alloc(bytes, `<${name}>`);
}

/** @returns the number in `METHOD /r/NUMBER HTTP/1.1`. */
export function idOf(startLine: string): number {
  return Number(/ \/r\/(\d+) /.exec(startLine)?.[1]);
}

export function statusOf(startLine: string): number {
  return Number(startLine.slice(9, 12));
}
