/** By which list a host gets the token: that of the forward proxy, of captured hosts, or of redirected connections. */
export type HostList = 'forwardProxy' | 'captured' | 'redirected';

/** What the routes of a list are called by in metrics and logs, and the list in sentences. */
export const HOST_LISTS = {
  forwardProxy: { prefix: 'forward', what: 'the forward proxy' },
  captured: { prefix: 'capture', what: 'captured hosts' },
  redirected: { prefix: 'redirect', what: 'redirected hosts' },
} as const satisfies Record<HostList, { readonly prefix: string; readonly what: string }>;
