import { expect, it } from 'vitest';
import { parseConfig } from '../../src/config/file.ts';
import type { Problem } from '../../src/platform/problems.ts';

async function parsed(text: string) {
  const problems: Problem[] = [];
  const { config } = await parseConfig(text, 'token-sidecar.yaml', problems);
  return { config, problems };
}

it.each(['accessLog: all', '{"accessLog":"all"}'])('of UTF-8 may begin a file: %s', async (text) => {
  const { config, problems } = await parsed(`\uFEFF${text}`);
  expect(problems).toEqual([]);
  expect(config).toEqual({ accessLog: 'all' });
});

it('of UTF-8 changes no place', async () => {
  const { problems } = await parsed('\uFEFFlisten: a\nlisten: b\n');
  expect(problems).toMatchObject([{ earlier: { line: 1, column: 1 }, place: { line: 2, column: 1 } }]);
});

it.each(['little', 'big'])('of UTF-16 is called so: %s-endian', async (order) => {
  const bytes = Buffer.from('\uFEFFlisten: 127.0.0.1:15080\n', 'utf16le');
  const text = (order === 'little' ? bytes : bytes.swap16()).toString('utf8');
  expect((await parsed(text)).problems).toMatchObject([
    {
      code: 'file_not_text',
      expected: 'text in UTF-8, and this begins with the byte order mark of UTF-16',
      remedy: expect.stringContaining('iconv'),
    },
  ]);
});
