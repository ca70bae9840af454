/** Loaded only if somebody asks for traces: as large as all the rest of the sidecar. */

export { openTracing, type Tracing } from './tracing/open-tracing.ts';
