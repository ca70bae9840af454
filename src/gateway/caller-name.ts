import type { Caller } from '../callers/caller.ts';

/** Names a caller in log lines, distinctly among callers of its kind. */
export function nameOf(caller: Caller): string {
  switch (caller.kind) {
    case 'service_account':
      return `${caller.namespace}/${caller.serviceAccount}`;
    case 'spiffe':
      return caller.uri;
    case 'certificate':
      return caller.names.join(',');
  }
}

/** Distinguishes a caller from every other: a common name is arbitrary text, even the name of another caller. */
export function keyOf(caller: Caller): string {
  const kind = caller.kind === 'certificate' ? caller.by : caller.kind;
  return `${kind}:${nameOf(caller)}`;
}
