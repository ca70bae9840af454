/** Access control in front of the routes of a listener that other pods reach. */

import type { GatewayCaller, RouteConfig } from '../../config/config.ts';
import { SidecarError } from '../../platform/errors.ts';
import type { IncomingRequest } from '../streams/contract.ts';

/** The policy of one configuration: from callers to routes. The first entry that matches a caller applies. */
export type CallerPolicy = readonly GatewayCaller[];

/** Knows the callers of one connection. */
export interface Authorizer {
  /** The request without anything that proves its caller's identity. */
  withoutProof(request: IncomingRequest): IncomingRequest;
  /**
   * Identifies the caller.
   * @param request as it arrived.
   * @throws {SidecarError} `caller_unknown`, `caller_ambiguous` or `caller_unverified`; a promise rejects with these.
   */
  identify(request: IncomingRequest): IdentifiedCaller | Promise<IdentifiedCaller>;
}

export interface IdentifiedCaller {
  /** For log lines: a name from the cluster or a certificate, never a proof. */
  readonly name: string;
  /**
   * Admits the caller for one request, within the policy and its limits.
   * @throws {SidecarError} `caller_not_allowed`, `too_many_requests`.
   */
  enter(policy: CallerPolicy): AdmittedCaller;
}

/** A caller for the duration of one request. */
export interface AdmittedCaller {
  /** Unique to the caller: derived from its verified identity. */
  readonly key: string;
  /** @throws {SidecarError} `caller_not_allowed`. */
  assertMayUse(route: RouteConfig): void;
  /** The caller has broken off its request, which had been sent on. Comes before `leave`. */
  brokeOff(): void;
  /** The request has ended. */
  leave(): void;
}

/** The caller should retry later. */
export class CallerHeldBack extends SidecarError<'too_many_requests' | 'caller_unverified'> {
  /** When a retry may help, in whole seconds (RFC 9110 §10.2.3); at least 1. */
  readonly retryAfterSeconds: number;

  constructor(code: 'too_many_requests' | 'caller_unverified', message: string, retryAfterMs: number) {
    super(code, message);
    this.retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  }
}
