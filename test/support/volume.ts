/**
 * How much a test takes of what it has many of: `daily` in `npm test`, where that shows the same in less time, and `whole`
 * in `npm run test:all`.
 */
export function volume(daily: number, whole: number): number {
  return process.env['TEST_VOLUME'] === 'whole' ? whole : daily;
}
