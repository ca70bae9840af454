/** No object of the API is larger than etcd allows, 1.5 MiB. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;

/**
 * The lines of a stream as they come; an unfinished last line is dropped, as it may be incomplete.
 * @throws {RangeError} for a line that is too long.
 */
export async function* readLines(stream: AsyncIterable<Uint8Array> | null): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream ?? []) {
    const [first, ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    rest += first as string;
    for (const next of others) {
      if (rest !== '') yield rest;
      rest = next;
    }
    if (rest.length > MAX_LINE_BYTES) throw new RangeError('a line is too long');
  }
}
