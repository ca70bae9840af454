/**
 * What people and logs may see of a configuration, into which secrets slip: a password in a URL, a Secret as the file,
 * a token as a value.
 */

/** Characters. Longer values are described. */
const MAX_SHOWN_LENGTH = 200;

/** Marks omitted text. */
export const MASK = '…';

/** Characters. Longer texts are not read. */
const MAX_READ_LENGTH = 10_000;

/** A URL without its query and user. */
export function redactedUrl(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname}${search === '' ? '' : `?${MASK}`}`;
}

/** Ids of applications, but some keys look alike. */
const UUID = /\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b/g;

/** The parts of a path are judged separately. */
const BEGINS_AS_PATH = /^["']?(?:[a-z][a-z0-9+.-]{0,15}:\/\/|\.{0,2}\/)/;

/** Settings that say where a secret is or how it is sent, and their neighbours: it may have been put there instead. */
const OF_PLACES = /(?:dir|directory|(?<!pro)file)$/;
const OF_WAYS =
  /^(?:tokensidecar)?(?:clientauth|existingauthorization|tokentype|whentokenunavailable|loglevel|accesslog)$/;
const OF_NAMES = /^(?:tokensidecar)?(?:name|credential|realm)$/;

/** `client.key`, `ca-2026.pem`, and anything with a folder. */
const PLACE =
  /\/|^\.+$|^[A-Za-z_-]+(?:\.[A-Za-z0-9]{1,8})*$|^[\w.-]+\.(?:cer|crt|jwt|json|key|p12|pem|txt|ya?ml)$/;
const WAY = /^(?:[A-Za-z_-]+|\d{1,3})$/;
const NAME = /^[\w .,:/+&-]+$/;

/** Elsewhere three words may be a passphrase. */
const OF_WORDS = /scope$/;
const PASSPHRASE = /^[^\w\s]{0,2}[A-Za-z]{2,}(?:\s+[A-Za-z]{2,}[^\w\s,]?){2,}["']?$/;

const HOST = /^[A-Za-z0-9.[\]:_-]*(?:\/.*)?["']?$/s;

/** An @ after the host, which is certain: it has a dot and no colon. */
const BEHIND_HOST = /^\/\/(?:[\w-]+(?:\.[\w-]+)+|localhost|\[[\da-f:.]+\])[/?#](?!.*(?:\/\/|[\s:,"'\\]))/is;

const CREDENTIALS = /\b(Bearer|DPoP|Basic|Digest|Negotiate|ApiKey|Token)\s+\S.*?(["']?)$/is;
const FIELD = /^(["']?[A-Za-z][A-Za-z0-9-]*:)\s+(?!\d+$)\S.*?(["']?)$/s;

/**
 * Undefined if the value has to be described instead.
 * @param key its setting, such as `credentials[0].dir` or `--ca-file`.
 */
export function redactedValue(value: string, key = ''): string | undefined {
  if (value.length > MAX_READ_LENGTH) return undefined;
  // A key in brackets, as in `(file)`, is no setting.
  const setting = key.startsWith('(') ? '' : nameOfSetting(key);
  if (isSecretInItsPlace(value.replace(/^["']|["']$/g, ''), setting)) return undefined;
  const shown = withoutSecrets(value);
  if (!OF_WORDS.test(setting) && PASSPHRASE.test(shown)) return undefined;
  return shown.length > MAX_SHOWN_LENGTH || shown === MASK ? undefined : shown;
}

/** `credentialsdir`, for `egressProxy.credentialsDir` and `--credentials-dir`. */
function nameOfSetting(key: string): string {
  return (key.split('.').at(-1) as string).replace(/[^A-Za-z]/g, '').toLowerCase();
}

/** A secret may be one word, so only paths and plain words are shown. */
function isSecretInItsPlace(value: string, setting: string): boolean {
  if (value === '') return false;
  return (
    (OF_PLACES.test(setting) && !PLACE.test(value)) ||
    (OF_WAYS.test(setting) && !WAY.test(value)) ||
    (OF_NAMES.test(setting) && !NAME.test(value))
  );
}

/**
 * `"ftp://x"`, or the kind of text.
 * @param key its setting.
 */
export function quoted(value: string, key?: string): string {
  const shown = redactedValue(value, key);
  return shown === undefined ? `a text of ${value.length} characters` : JSON.stringify(shown);
}

function withoutSecrets(text: string): string {
  return (
    text
      // User and password end at the last @, since a password may hold any character.
      .replace(/\/\/.*@/gs, (user) => (BEHIND_HOST.test(user) ? user : `//${MASK}@`))
      .replace(
        /^(["']?)[^/]*@(.*)$/s,
        (_, quote, host) => `${quote}${MASK}${HOST.test(host) ? `@${host}` : ''}`,
      )
      .replace(CREDENTIALS, `$1 ${MASK}$2`)
      .replace(FIELD, `$1 ${MASK}$2`)
      .replace(/(:\/\/[^\s?#]*)[?#].*$/s, `$1?${MASK}`)
      .replace(/\?[^\s=?]*=.*$/s, `?${MASK}`)
      .replace(UUID, MASK)
      .replace(/\S+/g, withoutSecretParts)
  );
}

function withoutSecretParts(word: string): string {
  if (!BEGINS_AS_PATH.test(word)) return looksSecret(word) ? MASK : word;
  return word
    .split('/')
    .map((part) => (looksSecret(part.replace(`?${MASK}`, '')) ? MASK : part))
    .join('/');
}

interface ShownLine {
  readonly text: string;
  /** Maps a column of the line to an index in `text`, both from 0. */
  place(column: number): number;
}

interface Piece {
  readonly from: number;
  readonly to: number;
  readonly shown: string;
}

/** A scalar, alias, anchor, comment, or one character of punctuation. */
const TOKEN =
  /[-?:](?=\s|$)|"(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?|(?<=^|\s)#.*$|[^\s"'#[\]{},][^[\]{},]*?(?=\s*(?::(?:\s|$)|,|\]|\}|\s#|$))|\S/g;

const MAX_KEY_LENGTH = 40;

/** Characters. Longer lines are not shown. */
const MAX_LINE_LENGTH = 10_000;

/**
 * Shows keys, punctuation, and the values of known keys; anything else may be secret.
 * @param outer the key under which the whole line stands.
 */
export function redactedLine(line: string, isKnown: (key: string) => boolean, outer?: string): ShownLine {
  if (line.length > MAX_LINE_LENGTH) return { text: MASK, place: () => 0 };
  const pieces: Piece[] = [];
  const open: string[] = [];
  let key = outer;
  for (const match of line.matchAll(TOKEN)) {
    const [token] = match;
    const from = match.index;
    const to = from + token.length;
    const isPunctuation = token.length === 1 && /[-?:,[\]{}|>&*!%@`]/.test(token);
    if (isPunctuation) {
      if (token === '{' || token === '[') open.push(token);
      if (token === '}' || token === ']') open.pop();
      // A list's entries stand under its key, a mapping's under their own.
      if (token === '{' || token === '}' || (token === ',' && open.at(-1) === '{')) key = undefined;
      pieces.push({ from, to, shown: token });
      continue;
    }
    const bare = token.replace(/^["']|["']$/g, '');
    const isKey = /^\s*:(?:\s|$|["'[{])/.test(line.slice(to)) && !token.startsWith('#');
    if (isKey) {
      key = bare;
      pieces.push({ from, to, shown: bare.length > MAX_KEY_LENGTH ? MASK : (redactedValue(token) ?? MASK) });
    } else if (token.startsWith('#')) {
      pieces.push({ from, to, shown: `# ${MASK}` });
    } else if (key !== undefined && isKnown(key)) {
      pieces.push({ from, to, shown: redactedValue(token, key) ?? MASK });
    } else {
      pieces.push({ from, to, shown: MASK });
    }
  }
  return assemble(line, pieces);
}

function assemble(line: string, pieces: readonly Piece[]): ShownLine {
  let text = '';
  let end = 0;
  const starts: {
    readonly from: number;
    readonly to: number;
    readonly at: number;
    readonly shown: string;
  }[] = [];
  for (const { from, to, shown } of pieces) {
    text += blank(line.slice(end, from));
    starts.push({ from, to, at: text.length, shown });
    text += shown;
    end = to;
  }
  return {
    text,
    place(column) {
      const piece = starts.findLast(({ from }) => from <= column);
      if (piece === undefined) return column;
      const inside = column - piece.from;
      return (
        piece.at +
        (column >= piece.to
          ? piece.shown.length + column - piece.to
          : Math.min(inside, piece.shown.length - 1))
      );
    },
  };
}

/** Blanks for each gap, so that columns agree. */
function blank(gap: string): string {
  return gap.replace(/./g, ' ');
}

/** Characters. Shorter words are shown. */
const MAX_WORD_LENGTH = 19;

const OTHER_THAN_NAMES = /[^A-Za-z0-9.:,=_\-*+$/@[\](){}<>"'|…]/;

const IPV6 = /^(?=(?:[^:]*:){2})[\da-f:.[\]/]+(?::\d{1,5})?$/i;

/** A key in groups, `AB12-3CD4-…`, has more pieces that mix letters and digits. */
const MAX_MIXED_SHARE = 2 / 3;

/** Names have longer pieces than passwords. */
const MIN_PIECE_LENGTH = 2.5;

/**
 * A long text is shown only if it consists of words, names, addresses and small numbers.
 * @param word without white space.
 */
function looksSecret(word: string): boolean {
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

/** `sidecar`, `SIDECAR`, `apiURL`: few humps, and as many vowels as words have. */
function isOfWords(letters: string): boolean {
  const humps = letters.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
  const isLong = humps.some((hump) => hump.length > MAX_WORD_LENGTH);
  return !isLong && humps.length * 3 <= letters.length + 2 && !/[^aeiouy]{7}/i.test(letters);
}
