/** Cookies in HTTP/2 may come as one field for each, so that they compress better (RFC 9113 §8.2.3). */

import type { Fields } from './field-section.ts';

/**
 * Joins the crumbs into one field, in the place of the first one, since HTTP/1.1 takes no more than one. `fields` stays
 * unchanged; without crumbs it is returned itself.
 */
export function joinCookies(fields: Fields): Fields {
  const first = indexOfCookie(fields, 0);
  if (first === -1 || indexOfCookie(fields, first + 2) === -1) return fields;
  const joined: string[] = [];
  const crumbs: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    const value = fields[at + 1] as string;
    if (fields[at] === 'cookie') crumbs.push(value);
    if (at === first || fields[at] !== 'cookie') joined.push(fields[at] as string, value);
  }
  joined[first + 1] = crumbs.join('; ');
  return joined;
}

function indexOfCookie(fields: Fields, from: number): number {
  for (let at = from; at < fields.length; at += 2) if (fields[at] === 'cookie') return at;
  return -1;
}
