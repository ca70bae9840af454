import { expect, it } from 'vitest';
import { BLOCKS, kindOf, nameOf } from './blocks.ts';
import { EXEMPTIONS, exemptionOf } from './exemptions.ts';

it('there are blocks', () => {
  expect(BLOCKS.length).toBeGreaterThan(80);
});

it('of every block it is known what it is, so that a test takes it up', () => {
  const unknown = BLOCKS.filter((block) => kindOf(block) === undefined);
  expect(
    unknown.map((block) => `${nameOf(block)} \`\`\`${block.info.join(' ')}`),
    'say what it is behind the fence (test/docs/blocks.ts has the words), or list it with its reason in test/docs/exemptions.ts',
  ).toEqual([]);
});

it('what is listed as not to be checked is there', () => {
  const used = new Set(BLOCKS.map(exemptionOf));
  expect(EXEMPTIONS.filter((exemption) => !used.has(exemption))).toEqual([]);
});
