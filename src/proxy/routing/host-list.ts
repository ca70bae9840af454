/** The list by which a host gets the token: the forward proxy's, that of captured hosts, or of redirected connections. */
export type HostList = 'forwardProxy' | 'captured' | 'redirected';

/** The prefix of a list's routes in metrics and logs, and the list's name in sentences. */
export const HOST_LISTS = {
  forwardProxy: { prefix: 'forward', what: 'the forward proxy' },
  captured: { prefix: 'capture', what: 'captured hosts' },
  redirected: { prefix: 'redirect', what: 'redirected hosts' },
} as const satisfies Record<HostList, { readonly prefix: string; readonly what: string }>;
