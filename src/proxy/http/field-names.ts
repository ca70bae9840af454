/**
 * Field names are compared without regard to case (RFC 9110 §5.1). The names that any rule of the data path knows come
 * in two spellings nearly always; those need no new string for each field of each message.
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

/** Whether `candidate`, in any case, is `name`, which begins with a lower-case letter. Nearly all others are told by length and first letter. */
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
