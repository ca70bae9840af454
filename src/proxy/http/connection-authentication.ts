/**
 * Schemes that authenticate a connection, not a request (RFC 4559): whatever follows on the connection is taken for the
 * same user's.
 */

import { type Fields, fieldValues } from './fields.ts';

/**
 * NTLM, Negotiate, Nego2 and what else may begin like them, and those that WinRM has beside them: as a scheme of a list, not as the
 * name of a parameter.
 */
const SCHEME = /(?:^|,)[\t ]*(?:ntlm|nego[a-z0-9]*|kerberos|credssp)(?=[\t ,]|$)/i;

/** Whether a request with these fields authenticates its connection. */
export function authenticatesConnection(fields: Fields): boolean {
  return fieldValues(fields, 'authorization').some(namesScheme);
}

/** Whether an answer with these fields asks for that, or is a step of it. */
export function challengesConnection(fields: Fields): boolean {
  return [...fieldValues(fields, 'www-authenticate'), ...fieldValues(fields, 'proxy-authenticate')].some(
    namesScheme,
  );
}

function namesScheme(value: string): boolean {
  return SCHEME.test(value);
}
