/** Reads the configuration file: YAML or JSON text in, a checked value and every problem out. */

import * as v from 'valibot';
import { readBoundedFile } from '../bounded-file.ts';
import { messageOf, systemCodeOf } from '../errors.ts';
import { nextTurn } from '../next-turn.ts';
import { describeIssue, keysOf, kindOfValue, withInsideOfUnion } from './file-issues.ts';
import { type FileConfig, fileSchema } from './file-schema.ts';
import { parseYaml } from './file-syntax.ts';
import { mend } from './mend.ts';
import type { Problem } from './problems.ts';
import type { SourceText } from './source-text.ts';

/** A ConfigMap holds at most 1 MiB. */
const MAX_FILE_BYTES = 1024 * 1024;

/** Each finds at least one thing wrong; a file that takes more is not worth understanding. */
const MOST_ROUNDS = 200;

/** What could be understood of the file. What could not is in `problems`. */
export interface FileReading {
  readonly config: FileConfig;
  /** False when so much is wrong that what is missing cannot be told from what was not understood. */
  readonly understood: boolean;
  /** Finds the place of a setting. Absent where the text could not be taken apart. */
  readonly source?: SourceText;
}

/** Their values may be shown in messages. */
const FILE_KEYS = keysOf(fileSchema);

const NOTHING_UNDERSTOOD: FileReading = { config: {}, understood: false };

/** @throws {Error} with a sentence, or the system's, where it cannot be read or is larger than a ConfigMap can be. */
export function readConfigText(path: string): Promise<string> {
  return readBoundedFile(path, MAX_FILE_BYTES);
}

/**
 * @param key the flag or variable that names the file.
 * @param known its text, where that has been read already.
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
  const parsed = await parseYaml(text, path, FILE_KEYS, problems);
  if (parsed === undefined) return NOTHING_UNDERSTOOD;
  const { source } = parsed;
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

/**
 * As much of a value as a schema understands; undefined where so much is wrong that nothing can be told of the rest.
 * @param value is changed: what is wrong is mended and the rest read again, so that the checks across settings report in the same run.
 */
export function readShape<const Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  problems: Problem[],
): v.InferOutput<Schema> | undefined {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const result = v.safeParse(schema, value);
    if (result.success) return result.output;
    const issues = result.issues.flatMap(withInsideOfUnion);
    problems.push(...issues.map((issue) => describeIssue(schema, issue)));
    const mended = issues.map((issue) => mend(value, issue));
    if (mended.includes(false)) return undefined;
  }
  return undefined;
}
