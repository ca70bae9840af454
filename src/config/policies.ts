import type { Config, ForwardingPolicy } from './config.ts';

/** What is done with requests, however their upstream is found. */
export function policiesOf({
  routes,
  forwardProxy,
  capture,
  redirect,
}: Pick<Config, 'routes' | 'forwardProxy' | 'capture' | 'redirect'>): readonly ForwardingPolicy[] {
  return [...routes, ...(forwardProxy?.allow ?? []), ...(capture?.hosts ?? []), ...(redirect?.hosts ?? [])];
}
