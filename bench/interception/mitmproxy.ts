import { join } from 'node:path';
import { CACHE } from '../programs.ts';

export const MITMPROXY_VERSION = '11.0.2';

/** Where `install.ts` puts it and its libraries. */
export const MITMPROXY = join(CACHE, `mitmproxy-${MITMPROXY_VERSION}`);
