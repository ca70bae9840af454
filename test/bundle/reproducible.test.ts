import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { buildCopy } from './built-copy.ts';

async function digests(place: string): Promise<Record<string, string>> {
  const copy = await buildCopy(place);
  onTestFinished(() => copy.remove());
  const files = (await readdir(copy.output)).sort();
  const entries = files.map(async (file) => {
    const digest = createHash('sha256').update(await readFile(join(copy.output, file)));
    return [file, digest.digest('hex')] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

it('two builds in different directories are the same, byte for byte', async () => {
  const one = await digests('one');
  const other = await digests('a/longer/path/to/the/other');
  expect(Object.keys(one)).toEqual(
    expect.arrayContaining(['proxy.js', 'proxy.js.map', 'sbom.cdx.json', 'THIRD-PARTY-LICENSES.txt']),
  );
  expect(one).toEqual(other);
}, 120_000);
