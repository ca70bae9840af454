import type { Config } from '../config/config.ts';
import type { ServingOptions } from '../proxy/data-path.ts';
import type { OpenCredential } from './token-sources.ts';

/** A configuration and the sources of its tokens: replaced together. */
export interface InUse {
  readonly config: Config;
  /** In the order of `config.credentials`. */
  readonly credentials: readonly OpenCredential[];
}

/** What the data path needs to serve. */
export function servingOf({ config, credentials }: InUse): ServingOptions {
  const { routes, forwardProxy, capture, redirect, crossSiteRequests, limits, accessLog, gateway } = config;
  return {
    routes,
    ...(forwardProxy === undefined ? {} : { forwardProxy }),
    ...(capture === undefined ? {} : { capture }),
    ...(redirect === undefined ? {} : { redirect }),
    crossSiteRequests,
    limits,
    ...(accessLog === undefined ? {} : { accessLog }),
    ...(gateway === undefined ? {} : { callers: gateway.callers }),
    bearers: new Map(credentials.map(({ source }) => [source.name, source])),
  };
}
