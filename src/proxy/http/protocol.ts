/** The version of HTTP that a message came by, or is to leave by. */
export type Protocol = 'http1' | 'h2';
