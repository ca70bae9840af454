/**
 * Every error: its code and, if the proxy answers it, its HTTP and gRPC statuses. Exit statuses are in
 * `exit-status.ts`, texts for people in `src/cli/explain/explanations.ts`.
 */

import { EXIT_STATUS_OF } from './exit-status.ts';
import type { GrpcStatusName } from './grpc-status.ts';

interface ProxyErrorRow {
  /** One sentence; the problem's `title` (RFC 9457 §3.1.3). */
  readonly title: string;
  readonly status: number;
  /**
   * UNAVAILABLE, which clients retry, if a later attempt may succeed or a token is missing. Never a code that gRPC
   * leaves to services (INVALID_ARGUMENT, NOT_FOUND, …): the answer would seem to be the service's.
   */
  readonly grpc: GrpcStatusName;
  /** Over HTTP/1.1 the answer ends the connection. */
  readonly closes?: true;
}

/** Counted and logged. */
interface ConnectionErrorRow {
  readonly title: string;
  readonly ends: 'connection';
}

/** Its exit status is in `exit-status.ts`. */
interface CommandErrorRow {
  readonly title: string;
}

type ErrorRow = ProxyErrorRow | ConnectionErrorRow | CommandErrorRow;

export const ERRORS = {
  bad_request: {
    status: 400,
    grpc: 'INTERNAL',
    closes: true,
    title: 'The request is not valid HTTP or its framing is ambiguous',
  },
  destination_not_allowed: {
    status: 403,
    grpc: 'PERMISSION_DENIED',
    title: 'The destination is not on the forward-proxy list',
  },
  authorization_not_allowed: {
    status: 403,
    grpc: 'PERMISSION_DENIED',
    title: 'The route refuses requests that carry Authorization',
  },
  authorization_needs_http1: {
    status: 403,
    grpc: 'PERMISSION_DENIED',
    title: 'NTLM and Negotiate authenticate a connection, which HTTP/2 shares',
  },
  subject_token_missing: {
    status: 403,
    grpc: 'PERMISSION_DENIED',
    title: 'The request has no token that could be exchanged',
  },
  subject_token_refused: {
    status: 403,
    grpc: 'PERMISSION_DENIED',
    title: 'The identity provider does not exchange the token of the request',
  },
  placeholder_not_allowed: {
    status: 403,
    grpc: 'PERMISSION_DENIED',
    title: 'The placeholder of a token stands where it is not swapped for one',
  },
  cross_site_request: {
    status: 403,
    grpc: 'PERMISSION_DENIED',
    title: 'The request comes from the page of another site',
  },
  caller_unknown: {
    status: 401,
    grpc: 'UNAUTHENTICATED',
    title: 'The caller has not proved who it is',
  },
  caller_ambiguous: {
    status: 400,
    grpc: 'UNAUTHENTICATED',
    title: 'The request shows more than one caller',
  },
  caller_not_allowed: {
    status: 403,
    grpc: 'PERMISSION_DENIED',
    title: 'The policy does not allow the caller what it asks for',
  },
  route_not_found: { status: 404, grpc: 'UNIMPLEMENTED', title: 'No route matches the request' },
  request_timeout: {
    status: 408,
    grpc: 'DEADLINE_EXCEEDED',
    closes: true,
    title: 'The app stopped sending its request, or reading its answer, for too long',
  },
  request_too_large: {
    status: 413,
    grpc: 'RESOURCE_EXHAUSTED',
    closes: true,
    title: 'The request body is larger than the limit',
  },
  uri_too_long: {
    status: 414,
    grpc: 'RESOURCE_EXHAUSTED',
    closes: true,
    title: 'The request target is longer than the limit',
  },
  misdirected_request: {
    status: 421,
    grpc: 'INTERNAL',
    title: 'The request names another host than the one its connection was opened to',
  },
  too_many_requests: {
    status: 429,
    grpc: 'RESOURCE_EXHAUSTED',
    title: 'The caller asks for more at once, or more often, than it may',
  },
  headers_too_large: {
    status: 431,
    grpc: 'RESOURCE_EXHAUSTED',
    closes: true,
    title: 'The request header section is larger than the limit',
  },
  upstream_unreachable: {
    status: 502,
    grpc: 'UNAVAILABLE',
    title: 'No connection to the upstream could be made',
  },
  upstream_protocol_error: {
    status: 502,
    grpc: 'UNAVAILABLE',
    title: 'The upstream broke off or did not answer valid HTTP',
  },
  upstream_tls_error: {
    status: 502,
    grpc: 'UNAVAILABLE',
    title: 'The TLS handshake with the upstream failed',
  },
  token_unavailable: { status: 503, grpc: 'UNAVAILABLE', title: 'No valid access token is held' },
  caller_unverified: {
    status: 503,
    grpc: 'UNAVAILABLE',
    title: 'Whether the caller is who it says cannot be told now',
  },
  draining: { status: 503, grpc: 'UNAVAILABLE', closes: true, title: 'The sidecar is shutting down' },
  overloaded: {
    status: 503,
    grpc: 'RESOURCE_EXHAUSTED',
    title: 'Too many requests are in flight, or connections open',
  },
  upstream_timeout: { status: 504, grpc: 'DEADLINE_EXCEEDED', title: 'The upstream did not answer in time' },
  loop_detected: { status: 508, grpc: 'INTERNAL', title: 'The upstream is the sidecar itself' },

  client_rejected_certificate: {
    ends: 'connection',
    title: 'The app does not trust the certificate by which its TLS is intercepted',
  },
  server_name_mismatch: {
    ends: 'connection',
    title: 'The TLS of the app asks for another name than its connection is to',
  },
  client_tls_error: {
    ends: 'connection',
    title: 'The TLS handshake with the app did not come to its end',
  },

  usage: { title: 'The command line is not understood' },
  provider_unavailable: { title: 'The identity provider or an upstream is unavailable' },
  kubernetes_api: { title: 'The Kubernetes API refused or did not answer' },
  internal: { status: 500, grpc: 'INTERNAL', title: 'An unexpected error' },
  credentials_rejected: { title: 'The identity provider rejected the credentials' },
  configuration: { title: 'The configuration is not valid' },
} as const satisfies Record<string, ErrorRow>;

type ErrorCode = keyof typeof ERRORS;

export type ProxyErrorCode = {
  [Code in ErrorCode]: (typeof ERRORS)[Code] extends { status: number } ? Code : never;
}[ErrorCode];

export type CommandErrorCode =
  | 'internal'
  | {
      [Code in ErrorCode]: (typeof ERRORS)[Code] extends { status: number } | { ends: 'connection' }
        ? never
        : Code;
    }[ErrorCode];

export type CountedErrorCode =
  | ProxyErrorCode
  | {
      [Code in ErrorCode]: (typeof ERRORS)[Code] extends { ends: 'connection' } ? Code : never;
    }[ErrorCode];

/** The message is logged and sent to the app, so it never holds a secret. */
export class SidecarError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'SidecarError';
  readonly code: Code;

  constructor(code: Code, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  get exitCode(): number {
    const statuses: Readonly<Partial<Record<ErrorCode, number>>> = EXIT_STATUS_OF;
    return statuses[this.code] ?? EXIT_STATUS_OF.internal;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The system's code, such as `ENOENT`. */
export function systemCodeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
