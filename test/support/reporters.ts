/** How much a run prints: dots, or a line for each test where there are few and each takes its time. */
type Printed = 'dot' | 'verbose';

/** Where CI wants counts (TEST_RESULTS names a file), JSON as well. */
export function reporters(printed: Printed = 'dot'): (Printed | ['json', { outputFile: string }])[] {
  const outputFile = process.env['TEST_RESULTS'];
  return outputFile === undefined ? [printed] : [printed, ['json', { outputFile }]];
}
