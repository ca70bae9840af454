import { readControlFields } from './control-fields.ts';
import { parseFieldLines } from './field-lines.ts';
import type { KnownSection, ReadSection } from './known-section.ts';
import type { MessageKind, RefusalReason } from './message-refused.ts';

/** Where a field section lies, and what it takes to read it. */
interface FieldSectionSource {
  readonly bytes: Buffer;
  /** Index of the first field line, or of the empty line. */
  readonly start: number;
  /** Index after the empty line. */
  readonly end: number;
  readonly minorVersion: 0 | 1;
  /** More fields than this are refused. */
  readonly maxFields: number;
  /** The previous section, where this one may reuse its fields. */
  readonly known: KnownSection | undefined;
}

/** Reads the field section of a head, with its control fields. */
export function readFieldSection(kind: MessageKind, source: FieldSectionSource): ReadSection | RefusalReason {
  const { bytes, start, end, minorVersion, maxFields, known } = source;
  const text = bytes.toString('latin1', start, end);
  const same = known?.get(text);
  if (same !== undefined) return same;

  const fields = parseFieldLines(bytes, start, text, start, maxFields);
  if (typeof fields === 'string') return fields;
  const control = readControlFields(kind, fields, minorVersion);
  if (typeof control === 'string') return control;
  const section = { fields, control };
  known?.keep(text, section);
  return section;
}
