import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { blocksOfKind } from './blocks.ts';
import { PROGRAMS } from './programs.ts';
import { commandsIn, type SimpleCommand } from './shell.ts';

async function mistakesIn(command: SimpleCommand): Promise<string[]> {
  const [program, ...args] = command.words;
  // Variables by themselves; a program that a variable names.
  if (program === undefined || program.startsWith('$')) return [];
  const judge = Object.hasOwn(PROGRAMS, program) ? PROGRAMS[program] : undefined;
  if (judge === undefined) return [`nothing is known of ${program}: see test/docs/programs.ts`];
  return await judge(args, command);
}

async function allMistakesIn(text: string): Promise<string[]> {
  const found = await Promise.all(commandsIn(text).map(mistakesIn));
  return found.flat();
}

describe('lines of a shell name flags, files and scripts that there are', () => {
  it.each(blocksOfKind('shell'))('%s', async (_, { text }) => {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: text, encoding: 'utf8' });
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(await allMistakesIn(text)).toEqual([]);
  });
});

describe('what is wrong is found', () => {
  it.each([
    ['token-sidecar chekc', 'there is no command chekc'],
    ['npx node src/main.ts proxy --lisen 127.0.0.1:1', '--lisen'],
    ['TOKEN_SIDECAR_AUTH_ULR=x token-sidecar check', 'TOKEN_SIDECAR_AUTH_ULR'],
    ['npm ci && npm run chekc', 'there is no npm script chekc'],
    ['node scripts/nothing.ts', 'there is no file scripts/nothing.ts'],
    ['helm install token-sidecar charts/token-sidecar --set sidecar.authURL=https://x', 'authURL'],
    ['kubectl --namespce shop get pods', '--namespce'],
    ['kubectl exec POD -- node /app/dist/token-sidecar.js check --statsu', '--statsu'],
    ['curl --silent http://localhost:15081/api/statsu | jq .', '/api/statsu'],
    ['docker build --build-arg REVISON="$(git rev-parse HEAD)" .', 'REVISON'],
    ['echo "$(token-sidecar chekc)"', 'chekc'],
    ['terraform apply', 'nothing is known of terraform'],
  ])('%s', async (text, mistake) => {
    expect((await allMistakesIn(text)).join('\n')).toContain(mistake);
  });
});
