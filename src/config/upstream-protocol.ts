import type { Problem } from '../platform/problems.ts';
import type { Upstream, UpstreamProtocol } from './config.ts';
import { oneOf, type ValueFormat } from './values.ts';

export const UPSTREAM_PROTOCOLS = [
  'auto',
  'http1',
  'h2',
  'h2c',
] as const satisfies readonly UpstreamProtocol[];

/** The protocol to an upstream, as a word. */
export const upstreamProtocol: ValueFormat<UpstreamProtocol> = oneOf(UPSTREAM_PROTOCOLS);

/**
 * HTTP/2 is `h2` over TLS and `h2c` over TCP: the other name is a mistake about the upstream.
 * @param key names where the word stands.
 */
export function protocolProblems(
  key: string,
  protocol: UpstreamProtocol | undefined,
  upstream: Pick<Upstream, 'protocol'>,
): Problem[] {
  if (protocol === 'h2c' && upstream.protocol === 'https') {
    const expected = 'auto, http1 or h2, as the upstream is an https URL: h2c is HTTP/2 without TLS';
    return [{ key, value: protocol, expected, code: 'protocol_mismatch' }];
  }
  if (protocol === 'h2' && upstream.protocol === 'http') {
    const expected = 'auto, http1 or h2c, as the upstream is an http URL: h2 is HTTP/2 over TLS';
    return [{ key, value: protocol, expected, code: 'protocol_mismatch' }];
  }
  return [];
}
