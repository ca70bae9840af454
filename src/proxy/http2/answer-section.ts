/** Answers (RFC 9113 §8.3.2): interim ones, any number, and the final one. */

import { MadeOf } from '../http/lasting-fields.ts';
import type { FaultReason } from './fault.ts';
import { type Fields, isPseudo, readFields } from './field-section.ts';

export interface AnswerSection {
  /** `interim`: another follows (RFC 9110 §15.2). */
  readonly kind: 'interim' | 'final';
  /** 100 to 999 without 101: codes from 600 up have no meaning (RFC 9110 §15) but exist. */
  readonly status: number;
  /** Without `:status`. */
  readonly fields: Fields;
  readonly contentLength: number | undefined;
}

/** What was asked decides what an answer may have. */
export type Asked = 'ordinary' | 'head' | 'connect';

/** Final answers to what is `ordinary`. */
const READ = new MadeOf<AnswerSection>();

/**
 * Reads the decoded fields of an answer, which stay unchanged.
 * @param asked `connect` also for extended CONNECT
 * @param endStream whether the frame ends the stream
 */
export function readAnswer(fields: Fields, asked: Asked, endStream: boolean): AnswerSection | FaultReason {
  const known = asked === 'ordinary' ? READ.get(fields) : undefined;
  if (known !== undefined) return known;
  const answer = read(fields, asked, endStream);
  if (typeof answer !== 'string' && answer.kind === 'final' && asked === 'ordinary') {
    READ.keep(fields, answer, answer.fields);
  }
  return answer;
}

function read(fields: Fields, asked: Asked, endStream: boolean): AnswerSection | FaultReason {
  let at = 0;
  for (; at < fields.length && isPseudo(fields[at] as string); at += 2) {
    if (fields[at] !== ':status') return 'pseudo_unknown';
    if (at > 0) return 'pseudo_repeated';
  }
  const control = readFields('answer', fields, at);
  if (typeof control === 'string') return control;
  if (at === 0) return 'pseudo_missing';
  const status = parseStatus(fields[1] as string);
  // Switching protocols is HTTP/1.1's alone (RFC 9113 §8.6).
  if (status === undefined || status === 101) return 'status_malformed';

  const kind = status < 200 ? 'interim' : 'final';
  if (kind === 'interim' && endStream) return 'interim_ends';
  const { contentLength, mended } = control;
  if (contentLength !== undefined) {
    const tunnels = asked === 'connect' && status >= 200 && status < 300;
    // A length of zero is common where there can be no body, but nobody sends one before the final answer.
    const bodiless = status === 204 || status === 205 || tunnels;
    if (kind === 'interim' || (bodiless && contentLength > 0)) return 'body_not_allowed';
  }
  return { kind, status, fields: (mended ?? fields).slice(at), contentLength };
}

/** How many octets of data have to follow a final answer, for `BodyLength`; undefined where any number may. */
export function expectedBodyBytes(answer: AnswerSection, asked: Asked): number | undefined {
  const { status, contentLength } = answer;
  if (asked === 'head' || status === 204 || status === 304) return 0;
  if (asked === 'connect' && status >= 200 && status < 300) return undefined;
  return contentLength;
}

/** Three digits, the first not zero. */
function parseStatus(value: string): number | undefined {
  if (value === '200') return 200;
  return /^[1-9][0-9]{2}$/.test(value) ? Number(value) : undefined;
}
