/** From callers to what they may: nothing, unless a rule that names them says so. */

import type { Caller, CertificateCaller } from './caller.ts';

/** One caller, or several of a kind. No pattern but the two that are named; only DNS names are the same in any case. */
export type CallerMatch =
  | {
      readonly kind: 'service_account';
      readonly namespace: string;
      /** `*` for all of the namespace. */
      readonly serviceAccount: string;
    }
  /** A whole SPIFFE id; or what it begins with, to a slash: `spiffe://cluster.local/ns/shop/*`. */
  | { readonly kind: 'spiffe'; readonly uri: string }
  /** One of the certificate's names, in any case where it is a DNS name. */
  | { readonly kind: 'certificate'; readonly name: string };

export interface CallerRule<Permission> {
  readonly match: CallerMatch;
  readonly allows: Permission;
}

/** What the first rule says that matches; undefined where none does. */
export function permissionOf<Permission>(
  rules: readonly CallerRule<Permission>[],
  caller: Caller,
): Permission | undefined {
  return rules.find(({ match }) => matches(match, caller))?.allows;
}

export function matches(match: CallerMatch, caller: Caller): boolean {
  switch (match.kind) {
    case 'service_account':
      return (
        caller.kind === 'service_account' &&
        caller.namespace === match.namespace &&
        (match.serviceAccount === '*' || caller.serviceAccount === match.serviceAccount)
      );
    case 'spiffe':
      return caller.kind === 'spiffe' && matchesUri(match.uri, caller.uri);
    case 'certificate':
      return caller.kind === 'certificate' && hasName(caller, match.name);
  }
}

function hasName({ by, names }: CertificateCaller, name: string): boolean {
  return names.includes(by === 'dns_names' ? name.toLowerCase() : name);
}

function matchesUri(pattern: string, uri: string): boolean {
  return pattern.endsWith('/*') ? uri.startsWith(pattern.slice(0, -1)) : uri === pattern;
}
