import { messageOf, type ProxyErrorCode, SidecarError, systemCodeOf } from '../../errors.ts';

/** How the connections to one upstream fail, as errors that the proxy may answer. */
export class UpstreamFailures {
  readonly #authority: string;

  /** @param authority names the upstream. */
  constructor(authority: string) {
    this.#authority = authority;
  }

  /** @param phase how far the connection had come when the error met it. */
  of(error: Error, phase: string): SidecarError<ProxyErrorCode> {
    const reason = systemCodeOf(error) ?? messageOf(error);
    switch (phase) {
      case 'connecting': {
        const code = systemCodeOf(error) === 'ETIMEDOUT' ? 'upstream_timeout' : 'upstream_unreachable';
        return this.#failure(code, `could not be reached: ${reason}`, error);
      }
      case 'securing':
        return this.#failure('upstream_tls_error', `failed the TLS handshake: ${reason}`, error);
      default:
        return this.#failure('upstream_protocol_error', `broke off before an answer: ${reason}`, error);
    }
  }

  closed(): SidecarError<ProxyErrorCode> {
    return this.#failure('upstream_protocol_error', 'closed the connection without an answer');
  }

  /** Over TLS anyone on the way can end a TCP connection; the end of an answer is the upstream's word (RFC 9112 §9.8). */
  cut(): SidecarError<ProxyErrorCode> {
    return this.#failure(
      'upstream_protocol_error',
      'ended its answer without close_notify: it may not be whole',
    );
  }

  unasked(): SidecarError<ProxyErrorCode> {
    return this.#failure('upstream_protocol_error', 'sent bytes before it was asked for any');
  }

  tooLate(what: 'connection' | 'answer', limitMs: number): SidecarError<ProxyErrorCode> {
    return this.#failure('upstream_timeout', `gave no ${what} within ${limitMs} ms`);
  }

  #failure(code: ProxyErrorCode, what: string, cause?: unknown): SidecarError<ProxyErrorCode> {
    return new SidecarError(code, `upstream ${this.#authority} ${what}`, { cause });
  }
}
