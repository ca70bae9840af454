import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const MODULE = join(import.meta.dirname, '../../../src/platform/process/small-heap.ts');

/** Runs `program` in a process whose heap is to stay small. */
function runSmall(program: string): Promise<{ stdout: string; stderr: string }> {
  const whole = `import { tuneHeap } from ${JSON.stringify(MODULE)}; tuneHeap(); ${program}`;
  const flags = ['--disable-warning=ExperimentalWarning', '--expose-gc', '--input-type=module'];
  return promisify(execFile)(process.execPath, [...flags, '--eval', whole]);
}

it('sets flags that this Node has: V8 says of others that it does not know them', async () => {
  expect(await runSmall('')).toEqual({ stdout: '', stderr: '' });
});

/** Small buffers that are held while megabytes of others come and go, as waiting bodies are. */
const HOLDS = `
  const held = [];
  for (let waiting = 0; waiting < 200; waiting++) {
    held.push(Buffer.from('x'.repeat(100)));
    for (let others = 0; others < 40; others++) Buffer.from('y'.repeat(3000));
  }
  gc();
  // The first leaves what it found to be swept beside the program; the second waits for that.
  gc();
  process.stdout.write(String(process.memoryUsage().arrayBuffers / held.length));
`;

it('has buffers of a hundred octets hold 8 KiB each at most', async () => {
  const { stdout } = await runSmall(HOLDS);
  expect(Number(stdout)).toBeGreaterThan(100);
  expect(Number(stdout)).toBeLessThan(9 * 1024);
});

function source(file: string): Promise<string> {
  return readFile(join(import.meta.dirname, '../../../src', file), 'utf8');
}

it.each(['gateway/program', 'sidecar/program', 'admin/serve-until-shutdown'])(
  'is what %s asks for',
  async (name) => {
    expect(await source(`${name}.ts`)).toMatch(/^ +tuneHeap\(\);$/m);
  },
);

it.each(['broker', 'injector'])('is used by %s', async (name) => {
  expect(await source(`${name}/program.ts`)).toContain('serveUntilShutdown(config, context,');
});
