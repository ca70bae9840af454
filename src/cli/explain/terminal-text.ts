/** Texts for a terminal of 100 columns. */

const WIDTH = 100;

/** @param hanging by how much lines after the first are indented. */
export function wrap(text: string, hanging = 0): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= WIDTH)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(lines.length === 0 ? word : `${' '.repeat(hanging)}${word}`);
  }
  return lines.join('\n');
}

export function indent(text: string): string {
  return text.replace(/^/gm, '    ');
}

/** Paragraphs and items of lists are wrapped anew, rows of tables become items, and code is indented. */
export function blocksOfMarkdown(page: string): string[] {
  return withoutLinks(page)
    .split(/^ *```\w*\n/m)
    .flatMap((part, index) => (index % 2 === 1 ? [indent(dedent(part.trimEnd()))] : proseOf(part)));
}

/** `explain` knows what other runbooks and codes say. */
function withoutLinks(page: string): string {
  return page.replace(/\[([^\]]*)\]\(([^)]*)\)/g, (_, text: string, target: string) => {
    if (/^\w+\.md$/.test(target) || target.includes('codes.md#')) return text;
    return `${text} (${target.replace(/^\.\.\/\.\.\//, '').replace(/^\.\.\//, 'docs/')})`;
  });
}

function dedent(code: string): string {
  const [shortest = ''] = (code.match(/^ */gm) ?? []).sort((a, b) => a.length - b.length);
  return code.replaceAll(new RegExp(`^${shortest}`, 'gm'), '');
}

const ITEM = /^(?:-|\d+\.) /;

function proseOf(part: string): string[] {
  const blocks = part.split(/\n\s*\n/).map((block) => tableAsItems(block).trim().replace(/^#+ /, ''));
  return blocks.filter((block) => block !== '').map(wrapItems);
}

/** Without its head. */
function tableAsItems(block: string): string {
  return block
    .replace(/^ *\|.*\|\n *\|[-|]+\|\n/m, '')
    .replace(/^ *\| (.*?) \| (.*) \|$/gm, (_, first: string, rest: string) => {
      return `- ${first}: ${rest.replaceAll(' | ', '; ')}`;
    });
}

/** A line that begins no item continues the one before. */
function wrapItems(block: string): string {
  const items = block.split(/\n(?= *(?:-|\d+\.) )/).map((item) => item.replace(/\s*\n\s*/g, ' ').trim());
  return items.map((item) => wrap(item, ITEM.exec(item)?.[0].length)).join('\n');
}
