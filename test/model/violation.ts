/** What the data path must never do, and did. */
export class Violation extends Error {}
