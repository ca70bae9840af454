/**
 * The differential rule: whatever nghttp2 or Go's framer refuses the codec refuses, and whatever all accept they read
 * alike. Of what is odd the codec may refuse more. PyPI's h2 is another voice: it ends at the first fault, so that it has
 * the say only on cases in which it finds none.
 */

import { PREFACE } from '../../../../src/proxy/http2/settings.ts';
import { Random } from '../../http1/fuzz/random.ts';
import { cutAt } from '../../http1/transcript.ts';
import { type FuzzCase, fuzzCase } from './connection-grammar.ts';
import type { GoFramer } from './go-framer.ts';
import { transcribeWithNghttp2 } from './nghttp2.ts';
import type { PythonH2 } from './python-h2.ts';
import { type Message, type Transcript, transcribe } from './transcript.ts';

/** Oracles that are to be installed. */
interface Installed {
  readonly python: PythonH2;
  readonly go: GoFramer;
}

/** What the oracles made of a case. */
interface Others {
  readonly nghttp2: Transcript;
  readonly h2?: Transcript | undefined;
  readonly go?: Transcript | undefined;
}

export interface FuzzTally {
  cases: number;
  /** Cases in which the codec read at least thirty messages to their end. */
  conversations: number;
  /** Messages that all read to their end, and alike. */
  messagesAlike: number;
  /** Cases in which the codec and an oracle refuse something. */
  bothRefused: number;
  /** Cases in which the codec alone refuses something, by its reason. */
  readonly stricter: Map<string, number>;
}

export function newTally(): FuzzTally {
  return {
    cases: 0,
    conversations: 0,
    messagesAlike: 0,
    bothRefused: 0,
    stricter: new Map(),
  };
}

/**
 * Runs one case and counts it.
 * @param installed those that are to be installed, where they are
 * @throws {Error} with seed, case, octets and all transcripts when the rule is broken.
 */
export async function runCase(
  seed: number,
  caseNumber: number,
  tally: FuzzTally,
  installed: Installed | undefined,
): Promise<void> {
  const random = new Random(seed, caseNumber);
  const given = fuzzCase(random);
  const octets = Buffer.concat(given.frames);
  const ours = transcribe(given, [octets]);
  const [nghttp2, h2, go] = await Promise.all([
    transcribeWithNghttp2(given),
    installed?.python.transcribe(given),
    installed?.go.transcribe(given),
  ]);
  const others = { nghttp2, h2, go };

  const asked = Object.values(others).filter((other) => other !== undefined);
  const alone = refusesAny(ours) && !asked.some(refusesAny);
  const broken =
    disagreement(ours, others) ??
    splitDisagreement(random, given, octets, ours) ??
    (alone && !given.odd ? 'the codec alone refuses what is not odd' : undefined);
  if (broken !== undefined) throw new Error(report(seed, caseNumber, given, broken, { ours, ...others }));

  tally.cases++;
  const ended = [...ours.messages.values()].filter((message) => message.ended).length;
  if (asked.every((other) => !refusesAny(other))) tally.messagesAlike += ended;
  if (ended >= 30) tally.conversations++;
  if (alone) {
    const reason = ours.refusal ?? [...ours.refused.values()].join();
    tally.stricter.set(reason, (tally.stricter.get(reason) ?? 0) + 1);
  } else if (refusesAny(ours)) {
    tally.bothRefused++;
  }
}

/** What breaks the rule, or undefined. */
export function disagreement(ours: Transcript, others: Others): string | undefined {
  const { nghttp2, go } = others;
  for (const [name, other] of Object.entries({ nghttp2, go })) {
    if (other === undefined || ours.refusal !== undefined) continue;
    if (other.refusal !== undefined && !refusesAny(ours))
      return `${name} refuses (${other.refusal}), the codec does not`;
    const [id, reason] = [...other.refused].find(([each]) => !ours.refused.has(each)) ?? [];
    if (id !== undefined) return `${name} refuses stream ${id} (${reason}), the codec does not`;
  }
  for (const [id, message] of ours.messages) {
    if (ours.refused.has(id)) continue;
    for (const [name, other] of Object.entries<Transcript | undefined>({ ...others })) {
      if (other === undefined || other.refusal !== undefined || other.refused.has(id)) continue;
      const difference = messageDifference(message, other.messages.get(id), ours.refusal !== undefined);
      if (difference !== undefined) return `stream ${id}: ${difference} (${name})`;
    }
  }
  return undefined;
}

function refusesAny(transcript: Transcript): boolean {
  return transcript.refusal !== undefined || transcript.refused.size > 0;
}

function messageDifference(mine: Message, other: Message | undefined, cut: boolean): string | undefined {
  if (other === undefined) return mine.heads.length > 0 ? 'the codec alone reads a message' : undefined;
  const heads = cut ? other.heads.slice(0, mine.heads.length) : other.heads;
  if (mine.heads.join() !== heads.join()) return 'heads differ';
  if (mine.reset) return undefined;
  if (!mine.ended) return !cut && other.ended ? 'the codec expects more' : undefined;
  if (!other.ended) return 'the codec expects no more';
  if (mine.data !== other.data) return 'bodies differ';
  return mine.trailers === other.trailers ? undefined : 'trailers differ';
}

function splitDisagreement(
  random: Random,
  given: FuzzCase,
  octets: Buffer,
  whole: Transcript,
): string | undefined {
  const most = 8 + Math.floor(octets.length / 100);
  const cuts = Array.from({ length: 1 + random.below(most) }, () => random.below(octets.length + 1));
  const pieces =
    random.chance(0.1) && octets.length < 2000 ? cutAt(octets, [...octets.keys()]) : cutAt(octets, cuts);
  const split = transcribe(given, pieces);
  return readable(comparable(split)) === readable(comparable(whole))
    ? undefined
    : `split in ${pieces.length} it reads ${readable(split)}`;
}

/** Without the data of what is refused: DATA is passed on as it comes, before the rest of its frame is found too much. */
function comparable(transcript: Transcript): Transcript {
  const cut = ([id, message]: [number, Message]): [number, Message] =>
    transcript.refusal === undefined && !transcript.refused.has(id)
      ? [id, message]
      : [id, { ...message, data: '' }];
  return { ...transcript, messages: new Map([...transcript.messages].map(cut)) };
}

function report(
  seed: number,
  caseNumber: number,
  { sender, frames }: FuzzCase,
  broken: string,
  transcripts: Readonly<Record<string, Transcript | undefined>>,
): string {
  return [
    `${broken} (seed ${seed}, case ${caseNumber})`,
    `${sender}${sender === 'client' ? ` after ${PREFACE.length} octets of preface` : ''}:`,
    ...frames.map(
      (frame) => `  ${frame.subarray(0, 9).toString('hex')} ${frame.subarray(9, 200).toString('hex')}`,
    ),
    ...Object.entries(transcripts).map(
      ([name, each]) => `${name}: ${each === undefined ? 'not asked' : readable(each)}`,
    ),
  ].join('\n');
}

function readable({ messages, refused, refusal }: Transcript): string {
  return JSON.stringify({ messages: [...messages], refused: [...refused], refusal });
}
