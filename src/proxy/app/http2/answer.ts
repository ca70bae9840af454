/** Field sections as HTTP/2 has them: `:status` first, names in lower case, nothing of the connection (RFC 9113 §8.2). */

import { lowerCaseName } from '../../http/field-names.ts';
import type { Fields } from '../../http/fields.ts';
import { answerFields, informationFields } from '../../streams/header-rules.ts';
import type { AnswerHead, OwnAnswer } from '../../streams/message.ts';

/** Of an upstream's final answer. */
export function answerSection(head: AnswerHead): string[] {
  return section(head.status, answerFields(head, { status: head.status, body: 'framed' }));
}

/** Of an informational answer. */
export function informationSection(head: AnswerHead): string[] {
  return section(head.status, informationFields(head));
}

/** Of an answer of the proxy's own. */
export function ownAnswerSection(own: OwnAnswer): string[] {
  return section(own.status, own.fields);
}

/** Of trailers. */
export function trailerSection(fields: Fields): string[] {
  return withLowerCaseNames([], fields);
}

function section(status: number, fields: Fields): string[] {
  return withLowerCaseNames([':status', String(status)], fields);
}

function withLowerCaseNames(section: string[], fields: Fields): string[] {
  for (let at = 0; at < fields.length; at += 2) {
    section.push(lowerCaseName(fields[at] as string), fields[at + 1] as string);
  }
  return section;
}
