/** `application/x-www-form-urlencoded`, read strictly: what could be read in two ways is refused. */

import { Refusal } from './refusal.ts';

/** The decoded text, or undefined when a percent escape is malformed or the bytes are not UTF-8. */
export function decodeFormComponent(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/**
 * The parameters by name. A parameter without a value counts as omitted, a repeated one is an error, known or not
 * (RFC 6749 §3.2).
 */
export function parseForm(body: Uint8Array): ReadonlyMap<string, string> | Refusal {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return new Refusal('invalid_request', 'the form is not valid UTF-8');
  }
  const parameters = new Map<string, string>();
  const seen = new Set<string>();
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decodeFormComponent(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? '' : decodeFormComponent(pair.slice(equals + 1));
    if (name === undefined || value === undefined) {
      return new Refusal('invalid_request', 'the form holds a malformed percent escape');
    }
    if (seen.has(name)) return new Refusal('invalid_request', 'a parameter is given more than once');
    seen.add(name);
    if (value !== '') parameters.set(name, value);
  }
  return parameters;
}
