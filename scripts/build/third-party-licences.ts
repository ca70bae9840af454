import { type BundledPackage, keyOf } from './bundled-packages.ts';

const RULE = '='.repeat(80);

/** What the licences ask of everybody who passes the program on: their texts. */
export function formatLicences(packages: readonly BundledPackage[]): string {
  const list = packages.map((each) => `${keyOf(each)} (${each.licence})`);
  return [
    'The files of this directory contain code of these packages, under the licences that follow.\n',
    ...list,
    ...packages.flatMap((each) => [
      `\n${RULE}\n${keyOf(each)}\n${each.licence}; in ${each.files.join(', ')}\n`,
      each.texts.map((text) => text.replaceAll('\r\n', '\n')).join('\n\n'),
    ]),
    '',
  ].join('\n');
}
