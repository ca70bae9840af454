import type { GatewayCaller, RouteConfig } from '../../config/config.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { IncomingRequest } from '../streams/contract.ts';

/** The first entry that matches a caller applies. */
export type CallerPolicy = readonly GatewayCaller[];

/** Knows the callers of one connection. */
export interface Authorizer {
  withoutCredentials(request: IncomingRequest): IncomingRequest;
  /**
   * @param request as it arrived.
   * @throws {SidecarError} `caller_unknown`, `caller_ambiguous` or `caller_unverified`; a promise rejects with these.
   */
  identify(request: IncomingRequest): IdentifiedCaller | Promise<IdentifiedCaller>;
}

export interface IdentifiedCaller {
  /** For log lines: never a proof. */
  readonly name: string;
  /**
   * Admits the caller for one request.
   * @throws {SidecarError} `caller_not_allowed`, `too_many_requests`.
   */
  enter(policy: CallerPolicy): AdmittedCaller;
}

export interface AdmittedCaller {
  /** Unique, from the verified identity. */
  readonly key: string;
  /** @throws {SidecarError} `caller_not_allowed`. */
  assertMayUse(route: RouteConfig): void;
  /** The caller aborted a request that had been sent on. Comes before `leave`. */
  brokeOff(): void;
  leave(): void;
}

export class CallerHeldBack extends SidecarError<'too_many_requests' | 'caller_unverified'> {
  /** Whole seconds, at least 1 (RFC 9110 §10.2.3). */
  readonly retryAfterSeconds: number;

  constructor(code: 'too_many_requests' | 'caller_unverified', message: string, retryAfterMs: number) {
    super(code, message);
    this.retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  }
}
