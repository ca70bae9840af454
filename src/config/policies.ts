import type { Config, ForwardingPolicy } from './config.ts';

/** How requests are handled, however their upstream is found. */
export function policiesOf({
  routes,
  forwardProxy,
  capture,
  redirect,
}: Pick<Config, 'routes' | 'forwardProxy' | 'capture' | 'redirect'>): readonly ForwardingPolicy[] {
  return [...routes, ...(forwardProxy?.allow ?? []), ...(capture?.hosts ?? []), ...(redirect?.hosts ?? [])];
}
