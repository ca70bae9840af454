/** The HTTP version that a message came by, or leaves by. */
export type Protocol = 'http1' | 'h2';
