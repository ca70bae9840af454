import { describe, expect, it } from 'vitest';
import { explain } from '../../../src/cli/explain/command.ts';
import { CHAPTERS, CODES } from '../../../src/cli/explain/explanations.ts';
import { readRunbooks } from '../../../src/cli/explain/runbooks.ts';
import { ERRORS } from '../../../src/platform/errors.ts';
import { EXIT_STATUS_OF } from '../../../src/platform/exit-status.ts';
import { PROBLEM_CODES } from '../../../src/platform/problems.ts';

async function run(...args: string[]): Promise<string> {
  let output = '';
  const stream = {
    write(text: string) {
      output += text;
    },
  };
  const status = await explain.run({
    args,
    env: {},
    stdout: stream,
    stderr: stream,
    logOutput: { ...stream, losses: { output: 0, repeated: 0 } },
    stdin: (async function* () {})(),
    shutdown: {
      signal: new AbortController().signal,
      request: () => undefined,
      takeHangups: () => undefined,
    },
  });
  expect(status).toBe(0);
  return output;
}

describe('explain', () => {
  it('knows every code of the configuration, every error that is counted, and every exit status', () => {
    const counted = Object.entries(ERRORS).filter(([, row]) => 'status' in row || 'ends' in row);
    const exits = Object.values(EXIT_STATUS_OF).map(String);
    const all = [...Object.keys(PROBLEM_CODES), ...counted.map(([code]) => code), ...exits, '0'];
    expect(all.filter((code) => !CODES.includes(code))).toEqual([]);
    expect(new Set(CODES).size).toBe(CODES.length);
  });

  it.each(CODES)('%s: says what it is, and what to do, in lines that fit a terminal', async (code) => {
    const text = await run(code);
    expect(text).toMatch(new RegExp(`^${code}: [A-Z].*\\.\n\n[A-Z]`));
    if (code !== '0') expect(text).toContain('What to do: ');
    const prose = text.split('\n').filter((line) => !line.startsWith('    '));
    expect(prose.filter((line) => line.length > 100)).toEqual([]);
  });

  it.each(['error[unknown_key]:', '[unknown_key]', 'UNKNOWN_KEY'])(
    'takes %s as it stands in a message',
    async (word) => {
      expect(await run(word)).toMatch(/^unknown_key: /);
    },
  );

  it('lists all of them when none is named', async () => {
    const text = await run();
    for (const { title } of CHAPTERS) expect(text).toContain(`${title}:`);
    for (const code of CODES) expect(text).toContain(`  ${code} `);
  });

  it('says so of a code that there is not, with the nearest one', async () => {
    const error = { code: 'usage', message: 'there is no code unkown_key; did you mean "unknown_key"?' };
    await expect(run('unkown_key')).rejects.toMatchObject(error);
    await expect(run('a', 'b')).rejects.toMatchObject({ code: 'usage' });
  });

  const ALERTS = Object.keys(readRunbooks()).filter((name) => name !== 'README');

  it.each(ALERTS)(
    '%s: the runbook, in lines that fit a terminal, without links and marks of Markdown',
    async (alert) => {
      const text = await run(alert);
      expect(text).toMatch(new RegExp(`^${alert}\n\nSeverity: `));
      for (const part of ['What it means for users', 'What to look at', 'What to do']) {
        expect(text).toContain(`\n\n${part}\n\n`);
      }
      const prose = text.split('\n').filter((line) => !line.startsWith('    '));
      expect(prose.filter((line) => line.length > 100)).toEqual([]);
      expect(text).not.toMatch(/\]\(|```|^\|/m);
    },
  );

  it('names what else to explain, takes an alert in any case, and lists all alerts', async () => {
    const text = await run('tokensidecardown');
    expect(text).toContain('    kubectl --namespace NAMESPACE describe pod POD\n');
    expect(text).toMatch(/\n\nAlso: token-sidecar explain 78, 69, 77, TokenSidecarTokenUnavailable\n$/);
    expect(await run()).toContain('  TokenSidecarDown ');
    await expect(run('TokenSidecarDonw')).rejects.toMatchObject({
      message: expect.stringContaining('did you mean "TokenSidecarDown"?'),
    });
  });

  it('makes rows of a table items, with further lines below the first', async () => {
    expect(await run('TokenSidecarTokenFileFailing')).toContain(
      '- `ENOSPC`, `EDQUOT`: the volume is full: the `sizeLimit` of its `emptyDir`, or what other\n  containers wrote there\n',
    );
  });
});
