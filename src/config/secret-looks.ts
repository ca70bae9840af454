/**
 * What may be a secret by its looks: a token, a key, a generated password, given where something else was expected. It is judged the
 * other way round: what is long is shown where it is made of words, names, addresses and small numbers, and nothing else is.
 */

/** Shorter words are shown: names and values of settings are as short. Characters. */
export const LONGEST_UNJUDGED = 19;

/** Of text that is no name, address or path; what is left out stands for itself. */
const OTHER_THAN_NAMES = /[^A-Za-z0-9.:,=_\-*+$/@[\](){}<>"'|…]/;

/** As settings write addresses of IPv6. */
const IPV6 = /^(?=(?:[^:]*:){2})[\da-f:.[\]/]+(?::\d{1,5})?$/i;

/** More than this part of a name's pieces have both letters and digits in keys that are written in groups: `AB12-3CD4-…`. */
const MOST_MIXED = 2 / 3;

/** Pieces with letters are longer in names than between the signs of a password. Characters, on average. */
const SHORTEST_PIECES = 2.5;

/** @param word without white space. */
export function looksSecret(word: string): boolean {
  if (word.length <= LONGEST_UNJUDGED || IPV6.test(word)) return false;
  if (OTHER_THAN_NAMES.test(word)) return true;
  const pieces = word.split(/[^A-Za-z0-9]+/).filter((piece) => piece !== '');
  const mixed = pieces.filter((piece) => /\d/.test(piece) && /[A-Za-z]/.test(piece));
  const named = pieces.filter((piece) => /[A-Za-z]/.test(piece));
  return (
    mixed.length > pieces.length * MOST_MIXED ||
    named.join('').length < named.length * SHORTEST_PIECES ||
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
  const isLong = humps.some((hump) => hump.length > LONGEST_UNJUDGED);
  return !isLong && humps.length * 3 <= letters.length + 2 && !/[^aeiouy]{7}/i.test(letters);
}
