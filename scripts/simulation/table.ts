/** Tables of Markdown on standard output. */

export function print(line = ''): void {
  process.stdout.write(`${line}\n`);
}

export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padStart(widths[column] ?? 0)).join(' | ')} |`;
  print(line(header));
  print(`|${widths.map((width) => '-'.repeat(width + 1)).join(':|')}:|`);
  for (const row of rows) print(line(row));
  print();
}
