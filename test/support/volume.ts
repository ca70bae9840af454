/**
 * How much a test takes of what it has many of: `daily` in `npm test`, where that shows the same in less time, and `whole`
 * in `npm run test:all`.
 */
export function volume<T>(daily: T, whole: T): T {
  return process.env['TEST_VOLUME'] === 'whole' ? whole : daily;
}
