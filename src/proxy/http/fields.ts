import { isNamed } from './field-names.ts';

/**
 * A field section: [name, value, name, value, …] as it came off the wire. Order, case and repetition carry meaning and
 * are kept; every octet above 0x7F is one char of the same code (latin1).
 */
export type Fields = readonly string[];

const NONE: readonly string[] = [];

/** Every value of the field `name` (lower case), in order. */
export function fieldValues(fields: Fields, name: string): readonly string[] {
  // A one-element array takes a ninth of a growing one, and nearly every field occurs once at most.
  let values: string[] | undefined;
  for (let index = 0; index < fields.length; index += 2) {
    if (!isNamed(fields[index] as string, name)) continue;
    if (values === undefined) values = [fields[index + 1] as string];
    else values.push(fields[index + 1] as string);
  }
  return values ?? NONE;
}

/** Whether the field `name` (lower case) is there. */
export function hasField(fields: Fields, name: string): boolean {
  for (let index = 0; index < fields.length; index += 2) {
    if (isNamed(fields[index] as string, name)) return true;
  }
  return false;
}

/** How many octets names and values have. */
export function octetsOf(fields: Fields): number {
  let octets = 0;
  for (const part of fields) octets += part.length;
  return octets;
}

/** The members of the list-valued field `name` (RFC 9110 §5.6.1), trimmed, without empty ones, case kept. */
export function listMembers(fields: Fields, name: string): string[] {
  return fieldValues(fields, name).flatMap(membersOf);
}

/** The members of one list, in the same way. */
export function membersOf(list: string): string[] {
  return list
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
}
