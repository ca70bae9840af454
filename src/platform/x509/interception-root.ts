/**
 * The name of the interception root: this, a space, and a mark of the sidecar's start. A root of this name that differs
 * from the present one is from an earlier start.
 */
export const INTERCEPTION_ROOT = 'token-sidecar root';
