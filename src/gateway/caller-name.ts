import type { Caller } from '../callers/caller.ts';

/** Names a caller in log lines, and apart from callers of its kind. */
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

/** Tells one caller from every other: a common name is any text, that of other callers' names too. */
export function keyOf(caller: Caller): string {
  const kind = caller.kind === 'certificate' ? caller.by : caller.kind;
  return `${kind}:${nameOf(caller)}`;
}
