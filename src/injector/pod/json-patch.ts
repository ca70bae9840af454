/** RFC 6902 §4.1. */
export interface AddOperation {
  readonly op: 'add';
  /** A JSON Pointer. */
  readonly path: string;
  readonly value: unknown;
}

export type JsonPatch = readonly AddOperation[];

/** `/spec/containers/-`, escaped (RFC 6901 §3). */
export function pointer(...segments: readonly (string | number)[]): string {
  return segments
    .map((segment) => `/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('');
}

export function segmentsOf(path: string): string[] {
  return path
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export function add(path: string, value: unknown): AddOperation {
  return { op: 'add', path, value };
}

export function addMembers(
  existing: object | null | undefined,
  path: readonly string[],
  members: Readonly<Record<string, unknown>>,
): AddOperation[] {
  if (existing === undefined || existing === null) return [add(pointer(...path), members)];
  return Object.entries(members).map(([name, value]) => add(pointer(...path, name), value));
}

export function append(
  existing: readonly unknown[] | null | undefined,
  path: readonly (string | number)[],
  items: readonly unknown[],
): AddOperation[] {
  if (items.length === 0) return [];
  if (existing === undefined || existing === null) return [add(pointer(...path), items)];
  return items.map((item) => add(pointer(...path, '-'), item));
}
