import type { RouteConfig } from '../../config/config.ts';
import type { ProxyErrorCode } from '../../errors.ts';
import type { GrantTrace } from '../../token/bearer-source.ts';
import type { TraceContext } from '../http/trace-context.ts';
import type { EndedRequest } from '../observer.ts';
import type { IncomingRequest } from '../streams/message.ts';

/** Makes spans of requests. What stands behind it is loaded where somebody asks for traces. */
export interface Tracer {
  /** @param parent what the app says that its request belongs to. */
  begin(request: IncomingRequest, parent: TraceContext | undefined): RequestSpan;
}

/** The span of a request of the app. */
export interface RequestSpan {
  readonly trace: TraceContext;
  routed(route: RouteConfig): void;
  /** The request waits for this grant. */
  awaits(grant: GrantTrace): void;
  /**
   * The request is sent upstream.
   * @param target as it is sent there, without a token.
   * @param resendCount how often it was before.
   */
  send(target: string, route: RouteConfig, resendCount: number): AttemptSpan;
  failed(code: ProxyErrorCode): void;
  end(ended: EndedRequest): void;
}

/** The span of one sending of it. */
export interface AttemptSpan {
  /** What the upstream is told. */
  readonly trace: TraceContext;
  answered(status: number): void;
  /** @param failure why there was no answer, or not all of it. */
  end(failure?: ProxyErrorCode | 'abandoned'): void;
}
