import type { Protocol } from '../http/messages.ts';

/** Names of ALPN (RFC 7301 §6). */
export const ALPN_NAMES: Readonly<Record<Protocol, string>> = { http1: 'http/1.1', h2: 'h2' };

/** The protocol that an app is told: a name, nothing since it asked for nothing, or that there is none in common. */
type ProtocolChoice =
  | { readonly kind: 'chosen'; readonly name: string }
  | { readonly kind: 'unsaid' }
  | { readonly kind: 'none' };

/** Whether the upstream decides: an app that offers only one protocol, or none, has decided itself. */
export function mustAskUpstream(offered: readonly string[] | undefined): boolean {
  return offered?.includes(ALPN_NAMES.h2) === true && offered.includes(ALPN_NAMES.http1);
}

/**
 * The ALPN answer to the app: what the upstream speaks, if the app offers it. An app that offers only the other one
 * gets that: requests are translated where possible, and the rest are answered with an error that says so.
 * @param spoken by the upstream; undefined if unknown.
 */
export function chooseProtocol(
  offered: readonly string[] | undefined,
  spoken: Protocol | undefined,
): ProtocolChoice {
  if (offered === undefined || offered.length === 0) return { kind: 'unsaid' };
  const [first, second] = spoken === 'h2' ? (['h2', 'http1'] as const) : (['http1', 'h2'] as const);
  for (const protocol of [first, second]) {
    const name = ALPN_NAMES[protocol];
    if (offered.includes(name)) return { kind: 'chosen', name };
  }
  return { kind: 'none' };
}
