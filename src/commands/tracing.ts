/** What a sidecar loads only where somebody asks for traces: as large as all the rest of it. */

export { openTracing, type Tracing } from '../tracing/open-tracing.ts';
