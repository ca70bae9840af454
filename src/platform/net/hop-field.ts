/** Names the sidecars that a request has passed: a request that comes back to one is a loop. See decision 0003. */
export const HOP_FIELD = 'token-sidecar-hop';
