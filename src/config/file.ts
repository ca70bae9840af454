/** Reads the configuration file: YAML or JSON text in, a checked value and every problem out. Loaded only if there is one. */

import * as v from 'valibot';
import { messageOf, systemCodeOf } from '../platform/errors.ts';
import type { Problem } from '../platform/problems.ts';
import { nextTurn } from '../platform/time/next-turn.ts';
import { readConfigText } from './config-text.ts';
import { describeIssue, keysOf, kindOfValue, withInsideOfUnion } from './file-issues.ts';
import { type FileConfig, fileSchema } from './file-schema.ts';
import { parseYaml } from './file-syntax.ts';
import { mend, type StandIns } from './mend.ts';
import { parseShortJson } from './short-json.ts';
import type { SourceText } from './source-text.ts';

/** Each round finds at least one mistake; a file that takes more is not worth understanding. */
const MAX_ROUNDS = 200;

/** The part of the file that could be understood. The rest is in `problems`. */
export interface FileReading {
  readonly config: FileConfig;
  /** False if so much is wrong that missing settings cannot be told from those not understood. */
  readonly understood: boolean;
  /** Finds the places of settings. Absent if the text could not be parsed. */
  readonly source?: () => Promise<SourceText | undefined>;
}

/** Keys whose values may be shown in messages. */
const FILE_KEYS = keysOf(fileSchema);

const NOTHING_UNDERSTOOD: FileReading = { config: {}, understood: false };

/**
 * @param key the flag or variable that names the file.
 * @param known its text, if already read.
 */
export async function readConfigFile(
  path: string,
  key: string,
  problems: Problem[],
  known?: string,
): Promise<FileReading> {
  let text: string;
  try {
    text = known ?? (await readConfigText(path));
  } catch (error) {
    const why = systemCodeOf(error) ?? messageOf(error);
    problems.push({ key, value: path, expected: `a readable file (${why})`, code: 'file_unreadable' });
    return NOTHING_UNDERSTOOD;
  }
  return await parseConfig(text, path, problems);
}

/** @param path names the file in messages. */
export async function parseConfig(text: string, path: string, problems: Problem[]): Promise<FileReading> {
  const short = await readShortJson(text);
  if (short !== undefined) {
    // Parsed only to say where something is wrong.
    const source = async () => (await parseYaml(text, path, FILE_KEYS, []))?.source;
    return { config: short, understood: true, source };
  }
  const parsed = await parseYaml(text, path, FILE_KEYS, problems);
  if (parsed === undefined) return NOTHING_UNDERSTOOD;
  const source = async () => parsed.source;
  await nextTurn();
  const value = parsed.value ?? {};
  if (Array.isArray(value) || typeof value !== 'object') {
    problems.push({
      key: '(file)',
      value: kindOfValue(value),
      expected: 'a mapping of settings',
      code: 'file_not_a_mapping',
    });
    return NOTHING_UNDERSTOOD;
  }
  const config = readShape(fileSchema, value, problems);
  return config === undefined ? { ...NOTHING_UNDERSTOOD, source } : { config, understood: true, source };
}

/** Undefined for other text, and if anything is wrong with it. */
async function readShortJson(text: string): Promise<FileConfig | undefined> {
  const value = parseShortJson(text);
  if (value === undefined) return undefined;
  await nextTurn();
  const result = v.safeParse(fileSchema, value);
  return result.success ? result.output : undefined;
}

/**
 * As much of a value as a schema understands; undefined if so much is wrong that nothing can be said of the rest.
 * @param value is changed: mistakes are mended and the rest read again, so that the checks across settings report in
 * the same run.
 * @param standIns for required values other than the names of entries.
 */
export function readShape<const Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  problems: Problem[],
  standIns?: StandIns,
): v.InferOutput<Schema> | undefined {
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const result = v.safeParse(schema, value);
    if (result.success) return result.output;
    const issues = result.issues.flatMap(withInsideOfUnion);
    problems.push(...issues.map((issue) => describeIssue(schema, issue)));
    const mended = issues.map((issue) => mend(value, issue, standIns));
    if (mended.includes(false)) return undefined;
  }
  return undefined;
}
