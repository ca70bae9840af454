import type { RouteConfig } from '../../config/config.ts';
import type { ProxyErrorCode } from '../../platform/errors.ts';
import type { GrantTrace } from '../../token/bearer-source.ts';
import type { TraceContext } from '../http/messages.ts';
import type { EndedRequest } from '../observer.ts';
import type { IncomingRequest } from '../streams/contract.ts';

/** Makes spans of requests. The implementation is loaded only when traces are asked for. */
export interface Tracer {
  /** @param parent the trace that the app says its request belongs to. */
  begin(request: IncomingRequest, parent: TraceContext | undefined): RequestSpan;
}

/** The span of an app's request. */
export interface RequestSpan {
  readonly trace: TraceContext;
  routed(route: RouteConfig): void;
  /** The request waits for this grant. */
  awaits(grant: GrantTrace): void;
  /**
   * The request is sent upstream.
   * @param target as sent there, without a token.
   * @param resendCount how often it was sent before.
   */
  send(target: string, route: RouteConfig, resendCount: number): AttemptSpan;
  failed(code: ProxyErrorCode): void;
  end(ended: EndedRequest): void;
}

/** The span of one attempt. */
export interface AttemptSpan {
  /** Sent to the upstream. */
  readonly trace: TraceContext;
  answered(status: number): void;
  /** @param failure why there was no answer, or not all of it. */
  end(failure?: ProxyErrorCode | 'abandoned'): void;
}
