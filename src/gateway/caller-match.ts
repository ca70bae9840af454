/** Which callers an entry of the policy matches. Only the two documented patterns exist, and only DNS names ignore case. */

import type { Caller, CertificateCaller } from '../callers/caller.ts';
import type { CallerMatch } from '../config/config.ts';

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
