/** Reads `application/x-www-form-urlencoded`, and refuses ambiguous forms. */

export class FormFault {
  /** Holds nothing of the form. */
  readonly description: string;

  constructor(description: string) {
    this.description = description;
  }
}

/** Undefined if a percent escape is malformed or the bytes are not UTF-8. */
export function decodeFormComponent(text: string): string | undefined {
  if (!/[+%]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/** Without a value, a parameter counts as omitted. Repeating one is an error (RFC 6749 §3.2). */
export function parseForm(body: Uint8Array): ReadonlyMap<string, string> | FormFault {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return new FormFault('the form is not valid UTF-8');
  }
  const parameters = new Map<string, string>();
  const seen = new Set<string>();
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decodeFormComponent(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? '' : decodeFormComponent(pair.slice(equals + 1));
    if (name === undefined || value === undefined) {
      return new FormFault('the form holds a malformed percent escape');
    }
    if (seen.has(name)) return new FormFault('a parameter is given more than once');
    seen.add(name);
    if (value !== '') parameters.set(name, value);
  }
  return parameters;
}
