import type { ProxyLimits } from '../../config/config.ts';

/**
 * Bounds on one head, and likewise on one trailer section: octets of all its lines with the empty line, number of
 * fields, octets of the request target.
 */
export type HeadLimits = Pick<ProxyLimits, 'headerBytes' | 'headerCount' | 'targetBytes'>;
