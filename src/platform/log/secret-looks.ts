/**
 * Whether a text looks like a secret: a token, a key, a generated password, given where something else was expected.
 * The test is the reverse: a long text is shown only if it consists of words, names, addresses and small numbers.
 */

/** Words up to this length are shown: names and values of settings are as short. Characters. */
const MAX_WORD_LENGTH = 19;

/** Characters that occur in no name, address or path; the character that marks omissions is allowed. */
const OTHER_THAN_NAMES = /[^A-Za-z0-9.:,=_\-*+$/@[\](){}<>"'|…]/;

/** IPv6 addresses as settings write them. */
const IPV6 = /^(?=(?:[^:]*:){2})[\da-f:.[\]/]+(?::\d{1,5})?$/i;

/** In a key written in groups, `AB12-3CD4-…`, more than this fraction of the pieces mix letters and digits. */
const MAX_MIXED_SHARE = 2 / 3;

/** Pieces with letters are longer in names than between the signs of a password. Average, in characters. */
const MIN_PIECE_LENGTH = 2.5;

/** @param word without white space. */
export function looksSecret(word: string): boolean {
  if (word.length <= MAX_WORD_LENGTH || IPV6.test(word)) return false;
  if (OTHER_THAN_NAMES.test(word)) return true;
  const pieces = word.split(/[^A-Za-z0-9]+/).filter((piece) => piece !== '');
  const mixed = pieces.filter((piece) => /\d/.test(piece) && /[A-Za-z]/.test(piece));
  const named = pieces.filter((piece) => /[A-Za-z]/.test(piece));
  return (
    mixed.length > pieces.length * MAX_MIXED_SHARE ||
    named.join('').length < named.length * MIN_PIECE_LENGTH ||
    !pieces.every(isPlain)
  );
}

/** `payments`, `8443`, `v2`, `30s`, `k8s`. */
function isPlain(piece: string): boolean {
  if (/^\d{1,12}$/.test(piece) || /^\d{1,6}[A-Za-z]{1,2}$/.test(piece)) return true;
  if (/^[A-Za-z\d]{1,4}$/.test(piece)) return true;
  const [, letters] = /^([A-Za-z]+)\d{0,4}$/.exec(piece) ?? [];
  return letters !== undefined && isOfWords(letters);
}

/** `sidecar`, `SIDECAR`, `whenTokenUnavailable`, `apiURL`: few humps for its length, and as many vowels as words have. */
function isOfWords(letters: string): boolean {
  const humps = letters.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
  const isLong = humps.some((hump) => hump.length > MAX_WORD_LENGTH);
  return !isLong && humps.length * 3 <= letters.length + 2 && !/[^aeiouy]{7}/i.test(letters);
}
