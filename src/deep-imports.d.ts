/** Types for the parts of packages that are imported past their entry point, to save what the entry loads. */

declare module '@prometheus-io/client/lib/counter.js' {
  export { Counter as default } from '@prometheus-io/client';
}
declare module '@prometheus-io/client/lib/gauge.js' {
  export { Gauge as default } from '@prometheus-io/client';
}
declare module '@prometheus-io/client/lib/histogram.js' {
  export { Histogram as default } from '@prometheus-io/client';
}
declare module '@prometheus-io/client/lib/registry.js' {
  export { Registry as default } from '@prometheus-io/client';
}

declare module 'undici/lib/dispatcher/pool.js' {
  export { Pool as default } from 'undici';
}
declare module 'undici/lib/core/errors.js' {
  import { errors } from 'undici';
  export default errors;
}
declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici';
  /** `Dispatcher.request` as a function of its dispatcher. */
  export default function request(
    this: Dispatcher,
    options: Dispatcher.RequestOptions,
  ): Promise<Dispatcher.ResponseData>;
}
