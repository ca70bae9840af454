/** Manifests that `inject` is given may hold Secrets: what is wrong with them is told without what stands there. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { runHere } from '../support/run-here.ts';

const SECRET = 'apiVersion: v1\nkind: Secret\nmetadata: { name: shop }\nstringData:\n  client_id: shop\n';

async function fileOf(content: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-manifests-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, 'secret.yaml');
  await writeFile(file, content);
  return file;
}

const MISTAKES: readonly (readonly [what: string, text: string, place: string])[] = [
  ['a colon in it', `${SECRET}  client_secret: s3cr3t: hunter2\n`, 'line 6, column 18: expected valid YAML'],
  ['quotes left open', `${SECRET}  client_secret: "hunter2\n`, 'line 7, column 1: expected valid YAML'],
  [
    'a key that stands twice',
    `${SECRET}  hunter2: 1\n  hunter2: 2\n`,
    'line 7, column 3: expected valid YAML',
  ],
  ['an alias of nothing', `${SECRET}  client_secret: *hunter2\n`, 'document 1: expected aliases'],
  [
    'a second document',
    `${SECRET}---\n{"client_secret": "hunter2" "x"}\n`,
    'line 7, column 29: expected valid YAML or JSON: ',
  ],
];

it.each(MISTAKES)('%s', async (_, text, place) => {
  const file = await fileOf(text);
  const told = await runHere(['inject', '-f', file]);
  const ofProfiles = await runHere(['inject', '--profiles', file]);
  for (const { code, stdout, stderr } of [told, ofProfiles]) {
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toContain(place);
    expect(stderr).not.toContain('hunter2');
  }
  expect(ofProfiles.stderr).toContain(`--profiles: ${file}: expected manifests in YAML or JSON: ${place}`);
});

it('a placeholder that nobody has filled in, which is a key of a mapping, is no warning of the process', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  onTestFinished(() => warned.mockRestore());
  const file = await fileOf(`${SECRET}  client_secret: {{ hunter2 }}\n`);
  const { code, stderr } = await runHere(['inject', '-f', file, '--profiles', file]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'Secret shop: skipped: no_pod_template\n' });
  expect(warned).not.toHaveBeenCalled();
});
