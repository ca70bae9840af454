/**
 * The differential rule: after every block of a sequence the decoder has read what an independent decoder has, with the
 * same marks, whatever came before. A block as an encoder wrote it is never refused; of one with a changed octet the decoder
 * may refuse more than the others, and no less. What it read goes through the encoder as the proxy passes it on, and the
 * libraries read the same again.
 */

import type { ConnectionFault } from '../../../../../src/proxy/http2/errors.ts';
import { HpackDecoder, type TooLarge } from '../../../../../src/proxy/http2/hpack/decoder.ts';
import { type DecodedFields, KnownBlocks } from '../../../../../src/proxy/http2/hpack/known-blocks.ts';
import { Random } from '../../../http1/fuzz/random.ts';
import { encode } from './encode.ts';
import type { Libraries, LibraryName, Section } from './libraries.ts';
import { relayed } from './relay.ts';
import {
  type Encoder,
  fuzzSequence,
  legal,
  namesAndValues,
  type Sequence,
  type Step,
} from './sequence-grammar.ts';

export interface FuzzTally {
  sequences: number;
  /** Blocks of each encoder that were read alike. */
  readonly alike: Map<Encoder, number>;
  tooLarge: number;
  /** Blocks of the codec's own encoder that libraries read alike. */
  relayed: number;
  /** Sequences that end with a changed block which others refuse, too. */
  bothRefused: number;
  /** Sequences that end with a changed block, or one after it, that the codec alone refuses, by its reason. */
  readonly stricter: Map<string, number>;
}

export function newTally(): FuzzTally {
  return { sequences: 0, alike: new Map(), tooLarge: 0, relayed: 0, bothRefused: 0, stricter: new Map() };
}

/** Trials to find a shorter sequence that breaks the rule too. */
const MAX_TRIALS = 150;

const OF_NODE: readonly Encoder[] = ['nghttp2', 'writer'];

type Decoded = DecodedFields | TooLarge | ConnectionFault;

interface Broken {
  readonly what: string;
  readonly block: number;
  readonly blocks: readonly Buffer[];
  readonly ours: unknown;
  readonly theirs: unknown;
}

/**
 * Runs one case and counts it.
 * @param libraries where they are installed; without them blocks are compared with what was to be written
 * @throws {Error} with seed, case, octets and what was read when the rule is broken.
 */
export async function runCase(
  seed: number,
  caseNumber: number,
  tally: FuzzTally,
  libraries: Libraries | undefined,
): Promise<void> {
  const sequence = fuzzSequence(new Random(seed, caseNumber), libraries === undefined ? OF_NODE : undefined);
  const broken = await runSequence(sequence, tally, libraries);
  if (broken === undefined) return;
  const [shorter, stillBroken] = await shortened(sequence, broken, libraries);
  throw new Error(report(seed, caseNumber, sequence, broken, shorter, stillBroken));
}

async function runSequence(
  sequence: Sequence,
  tally: FuzzTally,
  libraries: Libraries | undefined,
): Promise<Broken | undefined> {
  const { encoder, steps, limits } = sequence;
  const blocks = await encode(sequence, libraries);
  const readings = blocks.map((block, index) => ({ block, limit: steps[index]?.limit }));
  const others = await Promise.all(
    decodersOf(encoder, libraries).map(
      async (name) => [name, await libraries?.[name].decode(readings)] as const,
    ),
  );
  const changedFrom = steps.findIndex(({ change }) => change !== undefined);

  tally.sequences++;
  const decoder = new HpackDecoder(limits, new KnownBlocks());
  const decoded: { readonly found: Decoded; readonly text: string }[] = [];
  for (const [index, { block, limit }] of readings.entries()) {
    if (limit !== undefined) decoder.setLimit(limit);
    const found = decoder.decode(block);
    const broke = (what: string, theirs: unknown): Broken => ({
      what,
      block: index,
      blocks,
      ours: found,
      theirs,
    });
    const mayBeRefused = changedFrom !== -1 && index >= changedFrom;
    const refusals = others.filter(([, sections]) => typeof sections?.[index] === 'string');
    if (found.kind === 'connection_fault') {
      if (!mayBeRefused) return broke('the codec refuses a block that is right', others.map(at(index)));
      if (refusals.length > 0) tally.bothRefused++;
      else tally.stricter.set(found.reason, (tally.stricter.get(found.reason) ?? 0) + 1);
      break;
    }
    const [refusal] = refusals;
    if (refusal !== undefined) return broke(`${refusal[0]} refuses, the codec does not`, refusal[1]?.[index]);
    for (const [name, sections] of others) {
      const other = sections?.[index] as Section;
      const expected = underLimits(other, limits);
      if (contentOf(found) !== JSON.stringify(expected)) return broke(`${name} reads it otherwise`, expected);
    }
    if (others.length === 0 && !mayBeRefused) {
      const expected = intended(steps[index] as Step, sequence);
      if (fieldsOf(found) !== JSON.stringify(expected))
        return broke('other fields than were written', expected);
    }
    decoded.push({ found, text: JSON.stringify(found) });
    tally.alike.set(encoder, (tally.alike.get(encoder) ?? 0) + 1);
    if (found.kind === 'too_large') tally.tooLarge++;
  }
  for (const [index, { found, text }] of decoded.entries()) {
    if (JSON.stringify(found) === text) continue;
    return {
      what: 'it has changed since it was read',
      block: index,
      blocks,
      ours: found,
      theirs: JSON.parse(text),
    };
  }
  return relayBroken(decoded, steps, tally, libraries);
}

/** Libraries that read what an encoder wrote, as far as they are others than that. */
function decodersOf(encoder: Encoder, libraries: Libraries | undefined): readonly LibraryName[] {
  return libraries === undefined ? [] : (['go', 'python'] as const).filter((name) => name !== encoder);
}

function at(index: number): (other: readonly [LibraryName, (Section | string)[] | undefined]) => unknown {
  return ([name, sections]) => [name, sections?.[index]];
}

/** What the decoder makes of a section under its limits. */
function underLimits({ fields, never }: Section, limits: Sequence['limits']): object {
  const kept = withinLimits(fields, limits);
  return kept.length === fields.length
    ? { kind: 'fields', fields, never }
    : { kind: 'too_large', fields: kept };
}

function withinLimits(
  fields: readonly string[],
  { sectionBytes, sectionFields }: Sequence['limits'],
): string[] {
  const kept: string[] = [];
  let bytes = 0;
  for (let index = 0; index < fields.length; index += 2) {
    const [name, value] = [fields[index] as string, fields[index + 1] as string];
    bytes += name.length + value.length + 32;
    if (bytes > sectionBytes || index / 2 >= sectionFields) break;
    kept.push(name, value);
  }
  return kept;
}

function contentOf(found: DecodedFields | TooLarge): string {
  const { kind, fields } = found;
  return JSON.stringify(kind === 'fields' ? { kind, fields, never: found.neverIndexed } : { kind, fields });
}

function fieldsOf({ kind, fields }: DecodedFields | TooLarge): string {
  return JSON.stringify([kind, fields]);
}

function intended({ fields }: Step, { limits }: Sequence): unknown {
  const flat = namesAndValues(fields);
  const kept = withinLimits(flat, limits);
  return [kept.length === flat.length ? 'fields' : 'too_large', kept];
}

/** What was read, written again by the codec's own encoder for a peer whose table changes as the steps say. */
async function relayBroken(
  decoded: readonly { readonly found: Decoded }[],
  steps: readonly Step[],
  tally: FuzzTally,
  libraries: Libraries | undefined,
): Promise<Broken | undefined> {
  if (libraries === undefined) return undefined;
  const sections = decoded.map(({ found }, index) => ({ found, limit: steps[index]?.limit }));
  const messages = relayed(sections);
  const blocks = messages.map(({ block }) => block);
  const names = ['go', 'python'] as const;
  const read = await Promise.all(names.map((name) => libraries[name].decode(messages)));
  for (const [which, others] of read.entries()) {
    for (const [index, { expected }] of messages.entries()) {
      const theirs = others[index];
      if (JSON.stringify(theirs) === JSON.stringify(expected)) continue;
      return {
        what: `${names[which]} reads otherwise what the codec writes`,
        block: index,
        blocks,
        ours: expected,
        theirs,
      };
    }
  }
  tally.relayed += messages.length;
  return undefined;
}

/** Leaves out steps as long as the rule stays broken. */
async function shortened(
  sequence: Sequence,
  broken: Broken,
  libraries: Libraries | undefined,
): Promise<[Sequence, Broken]> {
  let shortest = sequence;
  let stillBroken = broken;
  let size = Math.ceil(sequence.steps.length / 2);
  let trials = 0;
  while (trials < MAX_TRIALS) {
    const { steps } = shortest;
    let found = false;
    for (let from = 0; from < steps.length && trials < MAX_TRIALS; from += size) {
      const fewer = legal([...steps.slice(0, from), ...steps.slice(from + size)], sequence.encoder);
      if (fewer.length === 0) continue;
      trials++;
      const trial = { ...sequence, steps: fewer };
      const outcome = await runSequence(trial, newTally(), libraries);
      if (outcome === undefined) continue;
      [shortest, stillBroken, found] = [trial, outcome, true];
      break;
    }
    if (found) size = Math.min(size, shortest.steps.length);
    else if (size === 1) break;
    else size = Math.ceil(size / 2);
  }
  return [shortest, stillBroken];
}

function report(
  seed: number,
  caseNumber: number,
  { encoder, limits }: Sequence,
  broken: Broken,
  shorter: Sequence,
  stillBroken: Broken,
): string {
  return [
    `${broken.what} (seed ${seed}, case ${caseNumber}, block ${broken.block} of ${broken.blocks.length}, encoder ${encoder})`,
    `the shortest sequence that was found has ${shorter.steps.length} blocks: ${stillBroken.what}, block ${stillBroken.block}`,
    `limits: ${JSON.stringify(limits)}`,
    ...stillBroken.blocks.map((block, index) => {
      const { limit } = shorter.steps[index] ?? {};
      return `  ${index}${limit === undefined ? '' : `, after a limit of ${limit}`}: ${block.toString('hex')}`;
    }),
    `ours:   ${JSON.stringify(stillBroken.ours)}`,
    `theirs: ${JSON.stringify(stillBroken.theirs)}`,
  ].join('\n');
}
