/**
 * How long a connection takes new requests, so that a change of the name's addresses, or of who listens there, reaches
 * every connection. Up to a fifth less, at random, so that those made together do not end together.
 */
const MAX_AGE_MS = 5 * 60_000;
const MAX_AGE_JITTER = 0.2;

/**
 * The maximum age of one connection.
 * @param random a number in [0, 1).
 */
export function maxAgeMs(random: () => number): number {
  return MAX_AGE_MS * (1 - MAX_AGE_JITTER * random());
}
