/**
 * The differential rule: whatever llhttp refuses the codec refuses, and whatever both accept they read alike. Of what is
 * odd the codec may refuse more. What the RFCs allow and llhttp does not is compared in the form in which the codec passes it on.
 */

import { readTrailers } from '../../../../src/proxy/http1/body-decoder.ts';
import { cutAt, type Message, octets, type Stream, type Transcript, transcribe } from '../transcript.ts';
import { LLHTTP_METHODS, transcribeWithLlhttp } from './llhttp.ts';
import { type FuzzCase, fuzzCase } from './message-grammar.ts';
import { Random } from './random.ts';

export interface FuzzTally {
  cases: number;
  /** Cases of many messages, of which the codec read at least thirty to their end. */
  conversations: number;
  /** Messages that both read to their end, and alike. */
  messagesAlike: number;
  bothRefused: number;
  /** Cases that llhttp takes and the codec refuses, by the codec's reason. */
  readonly stricter: Map<string, number>;
}

export function newTally(): FuzzTally {
  return { cases: 0, conversations: 0, messagesAlike: 0, bothRefused: 0, stricter: new Map() };
}

/**
 * Runs one case and counts it.
 * @throws {Error} with seed, case, octets and both transcripts when the rule is broken.
 */
export function runCase(seed: number, caseNumber: number, tally: FuzzTally): void {
  const random = new Random(seed, caseNumber);
  const given = fuzzCase(random);
  const asGiven = transcribe({ ...given, pieces: [given.bytes] });
  const fuzzed = { ...given, bytes: canonical(given) };
  const stream: Stream = { ...fuzzed, pieces: [fuzzed.bytes] };
  const ours = transcribe(stream);
  const theirs = transcribeWithLlhttp(stream);

  const broken =
    disagreement(fuzzed, ours, theirs) ??
    splitDisagreement(random, given, asGiven) ??
    (ours.end === 'refused' && !given.odd ? 'the codec refuses what is not odd' : undefined);
  if (broken !== undefined) throw new Error(report(seed, caseNumber, fuzzed, broken, ours, theirs));

  tally.cases++;
  const complete = ours.messages.filter((message) => message.complete).length;
  tally.messagesAlike += complete;
  if (complete >= 30) tally.conversations++;
  if (ours.end !== 'refused') return;
  if (theirs.end === 'refused') tally.bothRefused++;
  else tally.stricter.set(`${ours.reason}`, (tally.stricter.get(`${ours.reason}`) ?? 0) + 1);
}

const CHUNK_LINE = /(?<=^|[\r\n])[0-9A-Fa-f]+[ \t]*;[^\r\n]*/g;
const TABS_AFTER_SIZE = /(?<=(?:^|[\r\n])[0-9A-Fa-f]+)[ \t]+(?=\r\n)/g;
const ZEROS_BEFORE_LENGTH = /(?<=content-length:[ \t]*)0+(?=\d)/gi;
const LENGTH_AND_ITS_LIKE =
  /(\r\ncontent-length:[ \t]*(\d+)[ \t]*(?:\r\n[^\r\n]+)*?)\r\ncontent-length:[ \t]*\2[ \t]*(?=\r\n|$)/gi;

/**
 * Without whitespace around the signs of a chunk extension, and zeros before a length; in an answer also without a
 * length said twice and blanks after the last extension, and with spaces for tabs after a size.
 */
function canonical({ kind, bytes }: Pick<FuzzCase, 'kind' | 'bytes'>): Buffer {
  const answer = kind === 'response';
  let text = bytes
    .toString('latin1')
    .replace(CHUNK_LINE, (line) => {
      const signs = line.replace(/[ \t]*([;=])[ \t]*/g, '$1');
      return answer ? signs.replace(/(?<=[^;=])[ \t]+$/, '') : signs;
    })
    .replace(ZEROS_BEFORE_LENGTH, '');
  if (answer) text = text.replace(TABS_AFTER_SIZE, (blanks) => ' '.repeat(blanks.length));
  for (let before = ''; answer && text !== before; ) {
    before = text;
    text = text.replace(LENGTH_AND_ITS_LIKE, '$1');
  }
  return octets(text);
}

/** What breaks the rule, or undefined. */
export function disagreement(
  fuzzed: Pick<FuzzCase, 'kind' | 'requestMethod' | 'bytes'>,
  ours: Transcript,
  theirs: Transcript,
): string | undefined {
  for (const [index, mine] of ours.messages.entries()) {
    const other = theirs.messages[index];
    if (other === undefined) {
      if (theirs.end === 'tunnel') return undefined;
      if (isFreeMethod(fuzzed.kind, mine)) return undefined;
      return `the codec accepts head ${index}, llhttp does not`;
    }
    const difference = messageDifference(mine, other, ours, theirs);
    if (difference !== undefined) return `message ${index}: ${difference}`;
  }
  if (ours.end !== 'open' || theirs.end === 'tunnel') return undefined;
  if (theirs.messages.length > ours.messages.length) return 'llhttp reads a head where the codec does not';
  if (theirs.end === 'refused') return laterRefusal(fuzzed, ours.messages.length);
  return undefined;
}

/**
 * llhttp refuses a head or trailer section at the faulty octet, the codec some faults only at the section's end; so
 * the section is ended, and then it must have refused.
 */
function laterRefusal(
  fuzzed: Pick<FuzzCase, 'kind' | 'requestMethod' | 'bytes'>,
  headsRead: number,
): string | undefined {
  const ended = transcribe({ ...fuzzed, pieces: [fuzzed.bytes, octets('\r\n\r\n')] });
  const next = ended.messages[headsRead];
  if (next === undefined ? ended.end === 'refused' : isFreeMethod(fuzzed.kind, next)) return undefined;
  return 'llhttp refuses, the codec waits for more';
}

function messageDifference(
  mine: Message,
  other: Message,
  ours: Transcript,
  theirs: Transcript,
): string | undefined {
  if (mine.start !== other.start) return 'start lines differ';
  if (mine.minorVersion !== other.minorVersion) return 'versions differ';
  if (!sameStrings(mine.fields, other.fields)) return 'fields differ';
  if (mine.complete && other.complete) {
    if (mine.body !== other.body) return 'bodies differ';
    const permitted = readTrailers(other.trailers);
    if (typeof permitted === 'string') return `llhttp takes trailers that are refused: ${permitted}`;
    return sameStrings(mine.trailers, permitted) ? undefined : 'trailers differ';
  }
  if (!mine.body.startsWith(other.body) && !other.body.startsWith(mine.body))
    return 'bodies begin differently';
  if (mine.complete) return theirs.end === 'refused' ? 'llhttp refuses the body' : 'llhttp expects more body';
  if (other.complete && ours.end !== 'refused') return 'the codec expects more body';
  return undefined;
}

function splitDisagreement(random: Random, fuzzed: FuzzCase, whole: Transcript): string | undefined {
  const most = 8 + Math.floor(fuzzed.bytes.length / 100);
  const cuts = Array.from({ length: 1 + random.below(most) }, () => random.below(fuzzed.bytes.length + 1));
  const pieces = random.chance(0.1)
    ? cutAt(fuzzed.bytes, [...fuzzed.bytes.keys()])
    : cutAt(fuzzed.bytes, cuts);
  const split = transcribe({ ...fuzzed, pieces });
  if (JSON.stringify(split) === JSON.stringify(whole)) return undefined;
  return `split in ${pieces.length} pieces of ${pieces.map((piece) => piece.length)} octets it reads ${JSON.stringify(split)}`;
}

/** llhttp knows a closed list of methods; by RFC 9110 §9.1 a method is any token, and touches nothing else here. */
function isFreeMethod(kind: FuzzCase['kind'], message: Message): boolean {
  return kind === 'request' && !LLHTTP_METHODS.has(message.start.slice(0, message.start.indexOf(' ')));
}

function sameStrings(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((item, index) => item === others[index]);
}

function report(
  seed: number,
  caseNumber: number,
  fuzzed: FuzzCase,
  broken: string,
  ours: Transcript,
  theirs: Transcript,
): string {
  return [
    `${broken} (seed ${seed}, case ${caseNumber})`,
    `${fuzzed.kind} octets: ${JSON.stringify(fuzzed.bytes.toString('latin1'))}`,
    `codec:  ${JSON.stringify(ours)}`,
    `llhttp: ${JSON.stringify(theirs)}`,
  ].join('\n');
}
