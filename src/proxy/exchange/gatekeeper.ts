/** Who may come, where not everybody may: what stands before the routes of a listener that other pods reach. */

import type { GatewayCaller, RouteConfig } from '../../config/config.ts';
import { SidecarError } from '../../errors.ts';
import type { IncomingRequest } from '../streams/message.ts';

/** The policy of one configuration: from callers to routes. The first entry that matches a caller is its own. */
export type CallerPolicy = readonly GatewayCaller[];

/** Knows the callers of one connection. */
export interface Gatekeeper {
  /** The request without anything by which its caller proves who it is. */
  withoutProof(request: IncomingRequest): IncomingRequest;
  /**
   * Finds out who asks.
   * @param request as it came.
   * @throws {SidecarError} `caller_unknown`, `caller_ambiguous` or `caller_unverified`; a promise rejects with these.
   */
  identify(request: IncomingRequest): IdentifiedCaller | Promise<IdentifiedCaller>;
}

export interface IdentifiedCaller {
  /** For log lines: a name of the cluster or of a certificate, never a proof. */
  readonly name: string;
  /**
   * Lets the caller in by the policy and its bounds, for one request.
   * @throws {SidecarError} `caller_not_allowed`, `too_many_requests`.
   */
  enter(policy: CallerPolicy): AdmittedCaller;
}

/** A caller for the time of one request. */
export interface AdmittedCaller {
  /** Tells the caller from every other, by the identity that was verified. */
  readonly key: string;
  /** @throws {SidecarError} `caller_not_allowed`. */
  assertMayUse(route: RouteConfig): void;
  /** The request has ended. */
  leave(): void;
}

/** The caller is to come back later. */
export class CallerHeldBack extends SidecarError<'too_many_requests' | 'caller_unverified'> {
  /** When asking again may help, in whole seconds (RFC 9110 §10.2.3); at least 1. */
  readonly retryAfterSeconds: number;

  constructor(code: 'too_many_requests' | 'caller_unverified', message: string, retryAfterMs: number) {
    super(code, message);
    this.retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  }
}
