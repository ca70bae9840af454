/** Names the sidecars that a request has passed, so that one that comes back is a loop. See decision 0003. */
export const HOP_FIELD = 'token-sidecar-hop';
