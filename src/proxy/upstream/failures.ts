import { messageOf, type ProxyErrorCode, SidecarError, systemCodeOf } from '../../platform/errors.ts';
import { type ErrorCode, errorCodeName, FAULTS, type FaultReason } from '../http2/errors.ts';
import { asProxyError } from '../proxy-error.ts';
import { UpstreamReset } from '../streams/contract.ts';

export class UpstreamFailures {
  readonly #authority: string;

  /** @param authority names the upstream. */
  constructor(authority: string) {
    this.#authority = authority;
  }

  of(error: Error, phase: string): SidecarError<ProxyErrorCode> {
    if (error instanceof SidecarError) return asProxyError(error);
    const reason = systemCodeOf(error) ?? messageOf(error);
    switch (phase) {
      case 'connecting': {
        const code = systemCodeOf(error) === 'ETIMEDOUT' ? 'upstream_timeout' : 'upstream_unreachable';
        return this.#failure(code, `could not be reached: ${reason}`, error);
      }
      case 'securing':
        return this.#failure('upstream_tls_error', `failed the TLS handshake: ${reason}`, error);
      default:
        return this.#failure(
          'upstream_protocol_error',
          `broke off before its answer was whole: ${reason}`,
          error,
        );
    }
  }

  /** The upstream refused because only HTTP/1.1 was offered. */
  takesNoHttp1(cause: Error): SidecarError<ProxyErrorCode> {
    return this.#failure('upstream_tls_error', 'takes no HTTP/1.1: protocol: h2 is right', cause);
  }

  /** @param choseNothing whether it ignored the HTTP/1.1 offered by ALPN. */
  closed(choseNothing = false): SidecarError<ProxyErrorCode> {
    const hint = choseNothing ? ': if it speaks HTTP/2 alone, protocol: h2 is right' : '';
    return this.#failure('upstream_protocol_error', `closed the connection without an answer${hint}`);
  }

  /** Over TLS only the upstream can end its answer; a TCP end may come from anyone (RFC 9112 §9.8). */
  cut(): SidecarError<ProxyErrorCode> {
    return this.#failure(
      'upstream_protocol_error',
      'ended its answer without close_notify: it may not be whole',
    );
  }

  unasked(): SidecarError<ProxyErrorCode> {
    return this.#failure('upstream_protocol_error', 'sent bytes before it was asked for any');
  }

  tooLate(what: 'connection' | 'answer' | 'stream', limitMs: number): SidecarError<ProxyErrorCode> {
    return this.#failure('upstream_timeout', `gave no ${what} within ${limitMs} ms`);
  }

  /** @param spoken whether it has spoken HTTP/2 before. */
  http2(reason: FaultReason, spoken: boolean): SidecarError<ProxyErrorCode> {
    const [, text] = FAULTS[reason];
    return this.#failure(
      'upstream_protocol_error',
      spoken
        ? `did not speak valid HTTP/2: ${text}`
        : `does not speak HTTP/2 (${text}): protocol: http1 may be right, by which gRPC cannot be carried`,
    );
  }

  reset(code: ErrorCode): UpstreamReset {
    const hint = errorCodeName(code) === 'HTTP_1_1_REQUIRED' ? ': protocol: http1 may be right' : '';
    return new UpstreamReset(
      `upstream ${this.#authority} reset the request with ${nameOf(code)}${hint}`,
      code,
    );
  }

  /** @param code of GOAWAY. */
  goneAway(code: ErrorCode): SidecarError<ProxyErrorCode> {
    return this.#failure('upstream_protocol_error', `ended the connection with GOAWAY ${nameOf(code)}`);
  }

  silent(): SidecarError<ProxyErrorCode> {
    return this.#failure('upstream_timeout', 'did not answer PING: the connection is dead');
  }

  /** The upstream would refuse it (RFC 9113 §6.5.2). @param bytes as the setting counts them. */
  sectionTooLarge(what: 'head' | 'trailers', bytes: number, mostBytes: number): SidecarError<ProxyErrorCode> {
    const whose = what === 'head' ? 'the head, with what the sidecar adds to it, is' : 'the trailers are';
    return this.#failure(
      'headers_too_large',
      `takes at most ${mostBytes} octets of fields (SETTINGS_MAX_HEADER_LIST_SIZE): ${whose} ${bytes}`,
    );
  }

  /** @param chosen by ALPN; undefined if nothing was. */
  notHttp2(chosen: string | undefined): SidecarError<ProxyErrorCode> {
    const what = chosen === undefined ? 'nothing' : chosen;
    return this.#failure(
      'upstream_protocol_error',
      `chose ${what} by ALPN, where protocol: h2 wants h2: protocol: auto or http1 may be right`,
    );
  }

  /** @param protocol the setting that would send it as HTTP/2. */
  routeCarriesNoGrpc(protocol: 'h2' | 'h2c'): SidecarError<ProxyErrorCode> {
    return this.#failure(
      'upstream_protocol_error',
      `is spoken to in HTTP/1.1, by which gRPC cannot be carried: protocol: ${protocol} is for an upstream that speaks HTTP/2`,
    );
  }

  upstreamTakesNoGrpc(): SidecarError<ProxyErrorCode> {
    return this.#failure(
      'upstream_protocol_error',
      'chose HTTP/1.1 by ALPN, by which gRPC cannot be carried: HTTP/2 is to be switched on there, or at what stands before it',
    );
  }

  /** The request would authenticate the whole connection (RFC 4559). */
  sharedByOthers(): SidecarError<ProxyErrorCode> {
    return this.#failure(
      'authorization_needs_http1',
      'is spoken to in HTTP/2, where NTLM and Negotiate would authenticate the requests of others too: protocol: http1 carries them',
    );
  }

  #failure(code: ProxyErrorCode, what: string, cause?: unknown): SidecarError<ProxyErrorCode> {
    return new SidecarError(code, `upstream ${this.#authority} ${what}`, { cause });
  }
}

function nameOf(code: ErrorCode): string {
  return errorCodeName(code) ?? `code ${code}`;
}
