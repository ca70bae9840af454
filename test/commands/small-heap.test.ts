import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const MODULE = join(import.meta.dirname, '../../src/commands/small-heap.ts');

it('sets flags that this Node has: V8 says of others that it does not know them', async () => {
  const program = `import { keepHeapSmall } from ${JSON.stringify(MODULE)}; keepHeapSmall();`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program];
  expect(await promisify(execFile)(process.execPath, args)).toEqual({ stdout: '', stderr: '' });
});

it.each(['broker', 'gateway', 'injector', 'proxy'])('is what %s asks for', async (name) => {
  const text = await readFile(join(import.meta.dirname, `../../src/commands/${name}.ts`), 'utf8');
  expect(text).toMatch(/^ +keepHeapSmall\(\);$/m);
});
