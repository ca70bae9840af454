/**
 * Field names are case-insensitive (RFC 9110 §5.1). Those that rules of the data path name nearly always come in one of
 * two spellings, which need no new string for each field of each message.
 */

const RULED = [
  'authorization',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

const USUAL_SPELLINGS: ReadonlyMap<string, string> = new Map(
  RULED.flatMap((name) => [
    [name, name],
    [name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()), name],
  ]),
);

/**
 * Whether `candidate`, in any case, is `name`, which begins with a lower-case letter. Length and first letter rule out
 * nearly all others.
 */
export function isNamed(candidate: string, name: string): boolean {
  return (
    candidate.length === name.length &&
    (candidate.charCodeAt(0) | 0x20) === name.charCodeAt(0) &&
    lowerCaseName(candidate) === name
  );
}

/** `name` in lower case. */
export function lowerCaseName(name: string): string {
  return USUAL_SPELLINGS.get(name) ?? name.toLowerCase();
}
