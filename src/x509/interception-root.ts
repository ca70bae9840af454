/**
 * What the root of interception is called: this, a space, and a mark of the sidecar's start. A root of this name that is not
 * the present one is of an earlier start.
 */
export const INTERCEPTION_ROOT = 'token-sidecar root';
