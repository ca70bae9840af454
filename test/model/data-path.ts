import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** What a walk needs of the product, from whichever copy of its sources. */
export interface Product {
  readonly startProxy: typeof import('../../src/proxy/start-proxy.ts').startProxy;
  readonly createProxyMetrics: typeof import('../../src/proxy/metrics.ts').createProxyMetrics;
  readonly createLogger: typeof import('../../src/platform/log/logger.ts').createLogger;
  readonly Registry: typeof import('../../src/platform/prometheus.ts').Registry;
  readonly TokenUnavailable: typeof import('../../src/token/bearer-source.ts').TokenUnavailable;
}

/** @param source a directory like `src`. */
export async function loadProduct(source: string): Promise<Product> {
  const load = (path: string) => import(/* @vite-ignore */ pathToFileURL(join(source, path)).href);
  const [{ startProxy }, { createProxyMetrics }, { createLogger }, { Registry }, { TokenUnavailable }] =
    await Promise.all([
      load('proxy/start-proxy.ts'),
      load('proxy/metrics.ts'),
      load('platform/log/logger.ts'),
      load('platform/prometheus.ts'),
      load('token/bearer-source.ts'),
    ]);
  return { startProxy, createProxyMetrics, createLogger, Registry, TokenUnavailable };
}
