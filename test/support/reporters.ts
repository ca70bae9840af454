/** Dots for people; where CI wants counts (TEST_RESULTS names a file), JSON as well. */
export function reporters(): ('dot' | ['json', { outputFile: string }])[] {
  const outputFile = process.env['TEST_RESULTS'];
  return outputFile === undefined ? ['dot'] : ['dot', ['json', { outputFile }]];
}
