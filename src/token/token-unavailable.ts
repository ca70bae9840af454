import { SidecarError } from '../platform/errors.ts';

/** No token, no request: the proxy answers 503 with `Retry-After`. */
export class TokenUnavailable extends SidecarError<'token_unavailable'> {
  /** When asking again may help, in whole seconds (RFC 9110 §10.2.3); at least 1. */
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterMs: number) {
    super('token_unavailable', message);
    this.retryAfterSeconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  }
}
