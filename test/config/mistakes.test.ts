/**
 * What people read who have made a mistake: the documents in mistakes/ hold what was written, how the program was
 * started, and the whole message. `vitest run -u` writes the messages anew.
 */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PROBLEM_CODES } from '../../src/platform/problems.ts';
import { runHere } from '../support/run-here.ts';

const DOCUMENTS = join(import.meta.dirname, 'mistakes');

interface Mistake {
  readonly title: string;
  /** Name and text of the configuration file. */
  readonly file: readonly [string, string] | undefined;
  /** As in a shell: variables, the program, its arguments. */
  readonly started: string;
}

const USUAL = 'token-sidecar check --config token-sidecar.yaml';

/** Characters that a document cannot show. */
const WRITTEN_AS = { '␀': '\0', '␍': '\r', '␇': '\x07', '␟': '\uFEFF' } as const;

function readMistakes(text: string): { readonly head: string; readonly mistakes: readonly Mistake[] } {
  const [head = '', ...sections] = text.split(/^## /m);
  const mistakes = sections.map((section): Mistake => {
    const block = (language: string) =>
      new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'm').exec(section)?.[1]?.replace(/\n$/, '');
    const yaml = block('yaml');
    const json = block('json');
    return {
      title: section.split('\n', 1)[0] as string,
      file: yaml !== undefined ? ['yaml', yaml] : json !== undefined ? ['json', json] : undefined,
      started: block('sh') ?? USUAL,
    };
  });
  return { head, mistakes };
}

async function messageOf({ file, started }: Mistake): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'mistake-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  if (file !== undefined) {
    const text = file[1].replace(/[␀␍␇␟]/g, (sign) => WRITTEN_AS[sign as keyof typeof WRITTEN_AS]);
    writeFileSync(join(directory, `token-sidecar.${file[0]}`), text);
  }
  const words = [...started.matchAll(/(?:[^\s']|'[^']*')+/g)].map(([word]) => word.replaceAll("'", ''));
  const start = words.indexOf('token-sidecar');
  const env = Object.fromEntries(words.slice(0, start).map((word) => word.split(/=(.*)/s).slice(0, 2)));
  const args = words
    .slice(start + 1)
    .map((word) => word.replace(/^token-sidecar\.(?=yaml|json)/, `${directory}/$&`));
  const { code, stdout, stderr } = await runHere(args, env);
  if (code !== 0) return stderr.replaceAll(`${directory}/`, '').replace(/\n$/, '');
  throw new Error(`${started} found no mistake:\n${stdout}`);
}

function format(mistake: Mistake, message: string): string {
  const { title, file, started } = mistake;
  const written = file === undefined ? [] : ['', `\`\`\`${file[0]}`, file[1], '```'];
  const command = started === USUAL ? [] : ['', '```sh', started, '```'];
  return [`## ${title}`, ...written, ...command, '', '```text', message, '```', ''].join('\n');
}

const documents = readdirSync(DOCUMENTS).sort();
const read = documents.map((name) => readMistakes(readFileSync(join(DOCUMENTS, name), 'utf8')));

describe.each(documents)('%s', (name) => {
  it('says what its users read', async () => {
    const { head, mistakes } = read[documents.indexOf(name)] as (typeof read)[number];
    const sections: string[] = [];
    for (const mistake of mistakes) sections.push(format(mistake, await messageOf(mistake)));
    await expect(head + sections.join('\n')).toMatchFileSnapshot(join(DOCUMENTS, name));
  });
});

const text = documents.map((name) => readFileSync(join(DOCUMENTS, name), 'utf8')).join('\n');

it('is about a hundred mistakes', () => {
  expect(read.flatMap(({ mistakes }) => mistakes).length).toBeGreaterThanOrEqual(95);
});

it('has a mistake of every kind that the configuration can have', () => {
  const ofListeners = ['address_in_use', 'address_unavailable'];
  const unseen = Object.keys(PROBLEM_CODES).filter((code) => !text.includes(`error[${code}]`));
  expect(unseen.filter((code) => !ofListeners.includes(code))).toEqual([]);
});

it('shows no secret in any message', () => {
  const messages = [...text.matchAll(/^```text\n([\s\S]*?)^```$/gm)].map(([, message]) => message).join('\n');
  expect(messages).toContain('…');
  // Every secret in the documents has this in it.
  expect(messages).not.toMatch(/hunter/i);
});
