/** Formats of annotation values that nothing else shares. */

import type { ValueFormat } from '../../config/values.ts';

/** Names of Secrets and ConfigMaps (RFC 1123 subdomain). */
export const objectName: ValueFormat<string> = {
  expected: 'a name of lower-case letters, digits, "-" and "."',
  parse: (text) =>
    text.length <= 253 && /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(text)
      ? text
      : undefined,
};

/** Not a whole grammar: obvious mistakes are refused, and the kubelet judges the rest. */
export const imageReference: ValueFormat<string> = {
  expected: 'an image such as ghcr.io/token-sidecar/token-sidecar:0.1.0',
  parse: (text) => (/^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,1000}$/.test(text) ? text : undefined),
};

/** One value of the grant. Control characters would be a mistake in any of them. */
export const grantValue: ValueFormat<string> = {
  expected: 'text that is not empty, without control characters',
  parse: (text) =>
    text.trim() !== '' && [...text].every((character) => character >= ' ') ? text : undefined,
};
